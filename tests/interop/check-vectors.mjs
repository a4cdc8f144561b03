// Recompute the frozen vectors: `node check-vectors.mjs exchange-1.json` prints {checked, wrong}.

import { readFileSync } from 'node:fs';
import { createPrivateKey, sign } from 'node:crypto';
import { ml_dsa87 } from '@noble/post-quantum/ml-dsa.js';

import * as protocol from './protocol.mjs';
import { Malformed } from './strict-json.mjs';

const bytes = (value) => Buffer.from(value, 'hex');
const vectors = JSON.parse(readFileSync(process.argv[2], 'utf-8'));
const wrong = [];
let checked = 0;

function equal(name, got, expected) {
  checked += 1;
  const text = Buffer.isBuffer(got) ? got.toString('hex') : JSON.stringify(got);
  const wanted = Buffer.isBuffer(got) ? expected : JSON.stringify(expected);
  if (text !== wanted) wrong.push(name);
}

function edSign(seed, message) {
  const der = Buffer.concat([bytes('302e020100300506032b657004220420'), seed]);
  return sign(null, message, createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }));
}

function setting(exchange) {
  const { identity, capability, m1, leaf } = exchange;
  const edPublic = bytes(identity.ed25519_public);
  const pqPublic = bytes(identity.ml_dsa_public);
  const instance = protocol.instanceId(edPublic, pqPublic, identity.address);
  const pinned = {
    edPublic,
    pqPublic,
    instance,
    id: capability.principal_id,
    generation: capability.generation,
  };
  const keys = protocol.capabilityKeys({ token: bytes(capability.token), ...pinned });
  const proven = { input: bytes(m1.mac_input), mac: bytes(m1.mac), nonce: bytes(m1.nonce) };
  const kem = protocol.kemKey(bytes(leaf.ml_kem_seed));
  const x = protocol.xKey(bytes(leaf.x25519_private));
  return { pinned, keys, proven, kem, x };
}

function openM3(exchange, m3) {
  const { pinned, keys, proven, kem, x } = setting(exchange);
  const parts = protocol.splitRequest(m3);
  const hash = protocol.transcript(
    proven.input,
    proven.mac,
    bytes(exchange.m2),
    parts.ciphertext,
    parts.xPublic,
  );
  const secrets = [kem.decapsulate(parts.ciphertext), x.exchange(parts.xPublic)];
  const callKeys = protocol.callKeys(keys.psk, ...secrets, hash);
  const associated = protocol.requestAssociated({ ...pinned, challengeId: parts.challengeId, hash });
  return protocol.openRequest(callKeys, parts.sealed, associated);
}

function checkM2(exchange, m2) {
  const { pinned, keys, proven } = setting(exchange);
  const challenge = protocol.parseChallenge(m2);
  protocol.checkChallenge(challenge, pinned, keys, proven);
  protocol.encapsulate(challenge.leaf.kemPublic);
  protocol.xKey(Buffer.alloc(32, 7)).exchange(challenge.leaf.xPublic);
  return challenge;
}

function checkExchange(exchange) {
  const { identity, capability, m1, m3, m4, batch, leaf, binding, agreement } = exchange;
  const { pinned, keys, kem, x } = setting(exchange);
  const is = (name, got, expected) => equal(`${exchange.name}: ${name}`, got, expected);

  is('instance', pinned.instance, identity.instance);
  const pq = ml_dsa87.keygen(bytes(identity.ml_dsa_seed));
  is('ML-DSA key', Buffer.from(pq.publicKey), identity.ml_dsa_public);
  for (const name of ['challenge', 'binding', 'request', 'psk']) {
    is(`k_${name}`, keys[name], capability[`k_${name}`]);
  }

  for (const [name, message, key] of [
    ['challenge-request', m1, keys.challenge],
    ['agent-request-mac', m3, keys.request],
  ]) {
    const input = protocol.macInput(name, {
      ...pinned,
      route: message.route,
      timestamp: message.timestamp,
      nonce: bytes(message.nonce),
      body: bytes(message.body),
    });
    is(`${name} input`, input, message.mac_input);
    is(`${name} MAC`, protocol.hmac(key, input), message.mac);
    const { id, generation } = pinned;
    const { timestamp } = message;
    const proof = { id, generation, timestamp, nonce: bytes(message.nonce), mac: bytes(message.mac) };
    is(`${name} headers`, protocol.proofHeaders(proof), message.headers);
    is(`${name} headers read`, protocol.parseProofHeaders(message.headers).mac, message.mac);
  }
  is('M1 body', protocol.challengeBody(), m1.body);

  is('ML-KEM key', kem.public, leaf.ml_kem_public);
  is('X25519 key', x.public, leaf.x25519_public);
  const encodedLeaf = Buffer.concat([
    pinned.instance,
    ...['challenge_id', 'server_nonce', 'ml_kem_public', 'x25519_public'].map((name) => bytes(leaf[name])),
    protocol.uint(leaf.not_after, 8),
  ]);
  is('leaf digest', protocol.leafHash(encodedLeaf), batch.leaf_digests[batch.index]);
  const root = protocol.treeRoot(batch.leaf_digests.map(bytes));
  is('root', root, batch.root);
  const hashes = batch.path.match(/.{96}/g)?.map(bytes) ?? [];
  is('path', protocol.rootOfPath(protocol.leafHash(encodedLeaf), batch.index, batch.count, hashes), batch.root);
  const message = protocol.signedValue(pinned.instance, batch.count, root);
  is('signed value', message, batch.signed_value);
  is('Ed25519 signature', edSign(bytes(identity.ed25519_seed), message), batch.ed25519_signature);
  const context = protocol.label('challenge-batch');
  is('context', context.toString(), batch.ml_dsa_context);
  const signature = bytes(batch.ml_dsa_signature);
  is('ML-DSA signature', protocol.pqVerify(pinned.pqPublic, signature, message, context), true);
  const bare = protocol.pqVerify(pinned.pqPublic, signature, message, Buffer.of());
  is('ML-DSA without context', bare, false);

  const encoded = protocol.encodeBinding({ ...binding, ...pinned, nonce: bytes(m1.nonce) });
  is('binding', encoded, binding.encoded);
  const mac = protocol.bindingMac(
    keys.binding,
    protocol.leafHash(encodedLeaf),
    encoded,
    bytes(m1.mac_input),
    bytes(m1.mac),
  );
  is('binding MAC', mac, binding.mac);
  const position = Buffer.concat([protocol.uint(batch.index, 2), protocol.uint(batch.count, 2)]);
  const signatures = [bytes(batch.ed25519_signature), signature];
  const m2 = Buffer.concat([encodedLeaf, position, bytes(batch.path), ...signatures, encoded, mac]);
  is('M2', m2, exchange.m2);
  const challenge = checkM2(exchange, m2);
  is('M2 not-after', Number(challenge.leaf.notAfter), leaf.not_after);
  is('M2 issued', Number(challenge.fields.issued), binding.issued);
  is('M2 lifetime', Number(challenge.fields.lifetime), binding.lifetime);

  const ciphertext = bytes(agreement.ml_kem_ciphertext);
  is('ML-KEM secret', kem.decapsulate(ciphertext), agreement.ml_kem_secret);
  const ours = protocol.xKey(bytes(agreement.x25519_private));
  is('our X25519 key', ours.public, agreement.x25519_public);
  is('X25519 secret', ours.exchange(x.public), agreement.x25519_secret);
  const hash = protocol.transcript(bytes(m1.mac_input), bytes(m1.mac), m2, ciphertext, ours.public);
  is('transcript', hash, agreement.transcript);
  const secrets = [bytes(agreement.ml_kem_secret), bytes(agreement.x25519_secret)];
  const callKeys = protocol.callKeys(keys.psk, ...secrets, hash);
  is('secret', callKeys.secret, agreement.secret);
  is('request key', callKeys.requestKey, agreement.request_key);
  is('request IV', callKeys.requestIv, agreement.request_iv);
  is('response key', callKeys.responseKey, agreement.response_key);
  is('response IV', callKeys.responseIv, agreement.response_iv);

  const challengeId = bytes(leaf.challenge_id);
  const associated = protocol.requestAssociated({ ...pinned, challengeId, hash });
  is('M3 associated data', associated, m3.associated);
  const plaintext = bytes(m3.plaintext);
  is('M3 padding', protocol.pad(plaintext).length, m3.padded_bytes);
  const sealed = protocol.sealRequest(callKeys, plaintext, associated);
  const wire = protocol.joinRequest(challengeId, ciphertext, ours.public, sealed);
  is('M3', wire, m3.body);
  is('M3 opened', openM3(exchange, wire), m3.plaintext);

  const replyAssociated = protocol.responseAssociated(hash, wire);
  is('M4 associated data', replyAssociated, m4.associated);
  is('M4', protocol.sealResponse(callKeys, bytes(m4.plaintext), replyAssociated), m4.body);
  const opened = protocol.openResponse(callKeys, bytes(m4.body), replyAssociated);
  is('M4 opened', opened, m4.plaintext);
  is('M4 padding', protocol.pad(opened).length, m4.padded_bytes);
  is('M4 status', protocol.parseReply(opened).status, m4.status);
  is('M4 value', protocol.parseReply(opened).body, m4.value);
}

function meet(exchange, failure) {
  if (failure.message === 'm1') return protocol.parseProofHeaders(failure.headers);
  const message = exchange[failure.message];
  const base = bytes(message.body ?? message);
  const { at, hex, resume } = failure.change;
  const changed = Buffer.concat([base.subarray(0, at), bytes(hex), base.subarray(resume)]);
  if (failure.message === 'm2') return checkM2(exchange, changed);
  if (failure.message === 'm3') return openM3(exchange, changed);
  const { agreement, m4 } = exchange;
  const callKeys = { responseKey: bytes(agreement.response_key), responseIv: bytes(agreement.response_iv) };
  return protocol.parseReply(protocol.openResponse(callKeys, changed, bytes(m4.associated)));
}

equal('suite', protocol.SUITE, vectors.suite);
for (const exchange of vectors.exchanges) checkExchange(exchange);
for (const failure of vectors.failures) {
  checked += 1;
  let found = 'accepted';
  try {
    meet(vectors.exchanges[failure.exchange], failure);
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    found = error.rule;
  }
  if (found !== failure.expected) wrong.push(`${failure.name}: ${found} instead of ${failure.expected}`);
}
process.stdout.write(JSON.stringify({ checked, wrong }));
