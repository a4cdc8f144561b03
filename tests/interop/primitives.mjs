// Post-quantum primitives of two other implementations: reads [[name, operation, ...hex]] from standard input
// and prints what each gave. `liboqs` is compiled to WebAssembly and has no contexts; `noble` is JavaScript.

import { createMLDSA87, createMLKEM1024 } from '@oqs/liboqs-js';
import { ml_dsa87 } from '@noble/post-quantum/ml-dsa.js';
import { ml_kem1024 } from '@noble/post-quantum/ml-kem.js';

const kem = await createMLKEM1024();
const dsa = await createMLDSA87();

function withoutContext(context) {
  if (context.length) throw new Error('no contexts here');
}

const IMPLEMENTATIONS = {
  liboqs: {
    kemKey: () => kem.generateKeyPair(),
    encapsulate: (publicKey) => kem.encapsulate(publicKey),
    decapsulate: (ciphertext, secretKey) => ({ sharedSecret: kem.decapsulate(ciphertext, secretKey) }),
    signer: () => dsa.generateKeyPair(),
    sign: (message, secretKey, context) => {
      withoutContext(context);
      return { signature: dsa.sign(message, secretKey) };
    },
    verify: (signature, message, publicKey, context) => {
      withoutContext(context);
      return { good: dsa.verify(message, signature, publicKey) };
    },
  },
  noble: {
    kemKey: (seed) => ml_kem1024.keygen(seed),
    encapsulate: (publicKey) => {
      const { cipherText, sharedSecret } = ml_kem1024.encapsulate(publicKey);
      return { ciphertext: cipherText, sharedSecret };
    },
    decapsulate: (ciphertext, secretKey) => ({ sharedSecret: ml_kem1024.decapsulate(ciphertext, secretKey) }),
    signer: (seed) => ml_dsa87.keygen(seed),
    sign: (message, secretKey, context) => ({ signature: ml_dsa87.sign(message, secretKey, { context }) }),
    verify: (signature, message, publicKey, context) => ({
      good: ml_dsa87.verify(signature, message, publicKey, { context }),
    }),
  },
};

const parts = [];
for await (const part of process.stdin) parts.push(part);
const answers = JSON.parse(Buffer.concat(parts).toString()).map(([name, operation, ...inputs]) => {
  const work = IMPLEMENTATIONS[name][operation];
  try {
    const answer = work(...inputs.map((value) => Uint8Array.from(Buffer.from(value, 'hex'))));
    const hex = (value) => (value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value);
    return Object.fromEntries(Object.entries(answer).map(([key, value]) => [key, hex(value)]));
  } catch (error) {
    return { error: error.message };
  }
});
process.stdout.write(JSON.stringify(answers));
