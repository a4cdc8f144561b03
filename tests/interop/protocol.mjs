// The agent protocol, version 1, from its description: encodings, keys, M1 to M4. Nothing here does I/O.
// Symmetric and elliptic-curve primitives are Node's own (OpenSSL), post-quantum ones @noble/post-quantum.

import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  timingSafeEqual,
  verify,
} from 'node:crypto';
import { ml_dsa87 } from '@noble/post-quantum/ml-dsa.js';
import { ml_kem1024 } from '@noble/post-quantum/ml-kem.js';

import { Malformed, parseJson } from './strict-json.mjs';

export const SUITE = 'tabwarden/1 Ed25519+ML-DSA-87 X25519+ML-KEM-1024 HKDF-SHA384 AES-256-GCM HMAC-SHA384';
export const CONTENT_TYPE = 'application/vnd.tabwarden.v1';
export const METHOD = 'POST';
export const CHALLENGE_ROUTE = '/v1/challenge';
export const AGENT_ROUTE = '/v1/agent';

const HASH = 48;
const KEM = 1568;
const SIZES = { instance: 32, challengeId: 16, serverNonce: 32, kemPublic: KEM, xPublic: 32, notAfter: 8 };
const LEAF = Object.values(SIZES).reduce((sum, size) => sum + size);
const ED_SIGNATURE = 64;
const PQ_SIGNATURE = 4627;
const MAX_BATCH = 256;
const HEAD = 16 + KEM + 32;
const PADDED = [1024, 4096, 16384, 65536, 126976];

// ---- encodings ------------------------------------------------------------------------------------------

const text = (value) => Buffer.from(value, 'utf-8');
const join = (...parts) => Buffer.concat(parts);

/** A big-endian unsigned integer of `size` bytes. */
export function uint(value, size) {
  const bytes = Buffer.alloc(size);
  let left = BigInt(value);
  for (let at = size - 1; at >= 0; at -= 1) {
    bytes[at] = Number(left & 255n);
    left >>= 8n;
  }
  if (left !== 0n) throw new Malformed('integer-range');
  return bytes;
}

const readUint = (bytes) => bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);

export const label = (name) => text(`${SUITE}/${name}`);

/** u16 label length, label, u16 count, then u32 length and bytes of each field. */
export function pae(name, ...fields) {
  const head = label(name);
  const parts = [uint(head.length, 2), head, uint(fields.length, 2)];
  for (const field of fields) parts.push(uint(field.length, 4), field);
  return join(...parts);
}

function parsePae(name, count, bytes) {
  const head = join(uint(label(name).length, 2), label(name), uint(count, 2));
  if (!bytes.subarray(0, head.length).equals(head)) throw new Malformed('label-or-field-count');
  const fields = [];
  let at = head.length;
  for (let field = 0; field < count; field += 1) {
    const start = at + 4;
    const end = start <= bytes.length ? start + bytes.readUInt32BE(at) : Infinity;
    if (end > bytes.length) throw new Malformed('field-length');
    fields.push(bytes.subarray(start, end));
    at = end;
  }
  if (at !== bytes.length) throw new Malformed('trailing-bytes');
  return fields;
}

/** Exactly `length` bytes in the one unpadded spelling. */
export function parseBase64url(value, length) {
  const bytes = Buffer.from(value, 'base64url');
  if (bytes.length !== length || bytes.toString('base64url') !== value) throw new Malformed('base64url');
  return bytes;
}

function parseDecimal(value) {
  if (!/^(0|[1-9][0-9]{0,19})$/.test(value) || BigInt(value) >= 2n ** 63n) throw new Malformed('decimal');
  return BigInt(value);
}

// ---- primitives -----------------------------------------------------------------------------------------

export const sha384 = (...parts) => createHash('sha384').update(join(...parts)).digest();
export const hmac = (key, ...parts) => createHmac('sha384', key).update(join(...parts)).digest();
// Every output here fits one block of HKDF-Expand (RFC 5869 section 2.3).
const expand = (key, info, length) => hmac(key, info, Buffer.of(1)).subarray(0, length);
const same = (left, right) => left.length === right.length && timingSafeEqual(left, right);

function seal(key, iv, plaintext, associated) {
  const cipher = createCipheriv('aes-256-gcm', key, iv, { authTagLength: 16 });
  cipher.setAAD(associated);
  return join(cipher.update(plaintext), cipher.final(), cipher.getAuthTag());
}

function open(key, iv, sealed, associated) {
  const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: 16 });
  decipher.setAAD(associated);
  decipher.setAuthTag(sealed.subarray(-16));
  try {
    return join(decipher.update(sealed.subarray(0, -16)), decipher.final());
  } catch {
    throw new Malformed('seal');
  }
}

const jwk = (curve, bytes) =>
  createPublicKey({ key: { kty: 'OKP', crv: curve, x: bytes.toString('base64url') }, format: 'jwk' });

export function edVerify(publicKey, signature, message) {
  return verify(null, message, jwk('Ed25519', publicKey), signature);
}

/** An X25519 key pair of 32 private bytes. */
export function xKey(privateBytes) {
  const der = join(Buffer.from('302e020100300506032b656e04220420', 'hex'), privateBytes);
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  return {
    public: Buffer.from(createPublicKey(key).export({ format: 'jwk' }).x, 'base64url'),
    exchange(peer) {
      let secret;
      try {
        secret = diffieHellman({ privateKey: key, publicKey: jwk('X25519', peer) });
      } catch {
        throw new Malformed('x25519');
      }
      if (secret.every((byte) => byte === 0)) throw new Malformed('x25519');
      return secret;
    },
  };
}

/** {ciphertext, secret} for an ML-KEM-1024 key, which must be reduced. */
export function encapsulate(publicKey) {
  try {
    const { cipherText, sharedSecret } = ml_kem1024.encapsulate(publicKey);
    return { ciphertext: Buffer.from(cipherText), secret: Buffer.from(sharedSecret) };
  } catch {
    throw new Malformed('ml-kem-key');
  }
}

/** An ML-KEM-1024 key pair of a 64-byte seed. */
export function kemKey(seed) {
  const pair = ml_kem1024.keygen(seed);
  return {
    public: Buffer.from(pair.publicKey),
    decapsulate: (ciphertext) => Buffer.from(ml_kem1024.decapsulate(ciphertext, pair.secretKey)),
  };
}

export function pqVerify(publicKey, signature, message, context) {
  try {
    return ml_dsa87.verify(signature, message, publicKey, { context });
  } catch {
    return false;
  }
}

// ---- identities and proofs ------------------------------------------------------------------------------

export function instanceId(edPublic, pqPublic, address) {
  return sha384(pae('instance', edPublic, pqPublic, text(address))).subarray(0, 32);
}

/** The four keys of a capability. */
export function capabilityKeys({ token, instance, id, generation, edPublic, pqPublic }) {
  const scope = pae('capability', instance, text(id), uint(generation, 8), edPublic, pqPublic);
  const prk = hmac(sha384(scope), token);
  const key = (name) => expand(prk, label(`capability-${name}`), HASH);
  return { challenge: key('challenge'), binding: key('binding'), request: key('request'), psk: key('psk') };
}

export const challengeBody = () => pae('challenge-target', text(METHOD), text(AGENT_ROUTE));

/** What the MAC of M1 (`challenge-request`) or M3 (`agent-request-mac`) covers. */
export function macInput(name, { route, instance, id, generation, timestamp, nonce, body }) {
  return pae(
    name,
    text(METHOD),
    text(route),
    instance,
    text(id),
    uint(generation, 8),
    uint(timestamp, 8),
    nonce,
    sha384(body),
  );
}

export function proofHeaders({ id, generation, timestamp, nonce, mac }) {
  return [
    ['tabwarden-principal', id],
    ['tabwarden-generation', String(generation)],
    ['tabwarden-timestamp', String(timestamp)],
    ['tabwarden-nonce', nonce.toString('base64url')],
    ['tabwarden-proof', mac.toString('base64url')],
  ];
}

export function parseProofHeaders(headers) {
  const names = proofHeaders({ id: '', generation: 0, timestamp: 0, nonce: Buffer.of(), mac: Buffer.of() });
  const found = new Map(headers);
  if (headers.length !== names.length || !names.every(([name]) => found.has(name))) {
    throw new Malformed('proof-headers');
  }
  const proof = {
    generation: parseDecimal(found.get('tabwarden-generation')),
    timestamp: parseDecimal(found.get('tabwarden-timestamp')),
    nonce: parseBase64url(found.get('tabwarden-nonce'), 32),
    mac: parseBase64url(found.get('tabwarden-proof'), HASH),
    id: found.get('tabwarden-principal'),
  };
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(proof.id)) throw new Malformed('principal-id');
  return proof;
}

// ---- the tree -------------------------------------------------------------------------------------------

export const leafHash = (leaf) => sha384(Buffer.of(0), leaf);
const nodeHash = (left, right) => sha384(Buffer.of(1), left, right);

// RFC 6962 section 2.1: the left part of a tree is the largest power of two below its size.
function leftSize(count) {
  let size = 1;
  while (size * 2 < count) size *= 2;
  return size;
}

/** The root over leaf hashes. */
export function treeRoot(digests) {
  if (digests.length === 1) return digests[0];
  const left = leftSize(digests.length);
  return nodeHash(treeRoot(digests.slice(0, left)), treeRoot(digests.slice(left)));
}

function pathLength(index, count) {
  if (count <= 1) return 0;
  const left = leftSize(count);
  return 1 + (index < left ? pathLength(index, left) : pathLength(index - left, count - left));
}

/** The root that a leaf and its path (from the lowest hash up) lead to. */
export function rootOfPath(digest, index, count, hashes) {
  if (count === 1) return digest;
  const left = leftSize(count);
  const sibling = hashes.at(-1);
  const below = hashes.slice(0, -1);
  return index < left
    ? nodeHash(rootOfPath(digest, index, left, below), sibling)
    : nodeHash(sibling, rootOfPath(digest, index - left, count - left, below));
}

// ---- M2 -------------------------------------------------------------------------------------------------

export const signedValue = (instance, count, root) => pae('challenge-batch', instance, uint(count, 8), root);

export const encodeBinding = ({ method, route, id, generation, nonce, issued, lifetime }) =>
  pae(
    'challenge-binding-fields',
    text(method),
    text(route),
    text(id),
    uint(generation, 8),
    nonce,
    uint(issued, 8),
    uint(lifetime, 8),
  );

export const bindingMac = (key, digest, binding, m1Input, m1Mac) =>
  hmac(key, pae('challenge-binding', digest, binding, sha384(m1Input, m1Mac)));

/** M2 taken apart. Nothing of it may be believed before checkChallenge. */
export function parseChallenge(bytes) {
  if (bytes.length < LEAF + 4) throw new Malformed('challenge');
  const leaf = {};
  let at = 0;
  for (const [name, size] of Object.entries(SIZES)) {
    leaf[name] = bytes.subarray(at, at + size);
    at += size;
  }
  leaf.notAfter = readUint(leaf.notAfter);
  const index = bytes.readUInt16BE(at);
  const count = bytes.readUInt16BE(at + 2);
  if (count > MAX_BATCH) throw new Malformed('challenge');
  if (index >= count) throw new Malformed('leaf-index');
  at += 4;
  const hashes = [];
  for (let left = pathLength(index, count); left > 0; left -= 1) {
    hashes.push(bytes.subarray(at, at + HASH));
    at += HASH;
  }
  const signatures = at + ED_SIGNATURE + PQ_SIGNATURE;
  if (bytes.length < signatures + HASH) throw new Malformed('challenge-length');
  const binding = bytes.subarray(signatures, -HASH);
  const fields = parsePae('challenge-binding-fields', 7, binding);
  if ([8, 32, 8, 8].some((size, field) => fields[field + 3].length !== size)) throw new Malformed('binding');
  const digest = leafHash(bytes.subarray(0, LEAF));
  return {
    leaf,
    digest,
    index,
    count,
    root: rootOfPath(digest, index, count, hashes),
    edSignature: bytes.subarray(at, at + ED_SIGNATURE),
    pqSignature: bytes.subarray(at + ED_SIGNATURE, signatures),
    binding,
    fields: {
      method: fields[0].toString('latin1'),
      route: fields[1].toString('latin1'),
      id: fields[2].toString('latin1'),
      generation: readUint(fields[3]),
      nonce: fields[4],
      issued: readUint(fields[5]),
      lifetime: readUint(fields[6]),
    },
    mac: bytes.subarray(-HASH),
  };
}

/** Both signatures over the root that the path leads to, then the binding to our own M1. */
export function checkChallenge(challenge, pinned, keys, m1) {
  const message = signedValue(pinned.instance, challenge.count, challenge.root);
  if (!edVerify(pinned.edPublic, challenge.edSignature, message)) throw new Malformed('ed25519-signature');
  if (!pqVerify(pinned.pqPublic, challenge.pqSignature, message, label('challenge-batch'))) {
    throw new Malformed('ml-dsa-signature');
  }
  const mac = bindingMac(keys.binding, challenge.digest, challenge.binding, m1.input, m1.mac);
  if (!same(mac, challenge.mac)) throw new Malformed('binding-mac');
  if (!challenge.leaf.instance.equals(pinned.instance)) throw new Malformed('instance');
  const { method, route, id, generation, nonce } = challenge.fields;
  if (
    method !== METHOD ||
    route !== AGENT_ROUTE ||
    id !== pinned.id ||
    generation !== BigInt(pinned.generation) ||
    !nonce.equals(m1.nonce)
  ) {
    throw new Malformed('binding-fields');
  }
}

// ---- M3 and M4 ------------------------------------------------------------------------------------------

export const transcript = (m1Input, m1Mac, m2, ciphertext, xPublic) =>
  sha384(pae('transcript', m1Input, m1Mac, m2, ciphertext, xPublic));

export function callKeys(psk, kemSecret, xSecret, hash) {
  const secret = hmac(psk, kemSecret, xSecret);
  const key = (name, length) => expand(secret, pae(name, hash), length);
  return {
    secret,
    requestKey: key('request-key', 32),
    requestIv: key('request-iv', 12),
    responseKey: key('response-key', 32),
    responseIv: key('response-iv', 12),
  };
}

export const requestAssociated = ({ instance, challengeId, id, generation, hash }) =>
  pae(
    'agent-request',
    text(METHOD),
    text(AGENT_ROUTE),
    instance,
    challengeId,
    text(id),
    uint(generation, 8),
    hash,
  );

export const responseAssociated = (hash, m3) => pae('agent-response', hash, sha384(m3));

export function pad(plaintext) {
  const size = PADDED.find((candidate) => plaintext.length + 4 <= candidate);
  if (size === undefined) throw new Malformed('plaintext-length');
  const padded = Buffer.alloc(size);
  padded.writeUInt32BE(plaintext.length);
  plaintext.copy(padded, 4);
  return padded;
}

export function unpad(padded) {
  const end = 4 + padded.readUInt32BE(0);
  const plaintext = padded.subarray(4, end);
  if (end > padded.length || !pad(plaintext).equals(padded)) throw new Malformed('padding');
  return plaintext;
}

const isSealedLength = (length) => PADDED.includes(length - 16);

export const sealRequest = (keys, plaintext, associated) =>
  seal(keys.requestKey, keys.requestIv, pad(plaintext), associated);

export const joinRequest = (challengeId, ciphertext, xPublic, sealed) =>
  join(challengeId, ciphertext, xPublic, sealed);

export function splitRequest(m3) {
  if (!isSealedLength(m3.length - HEAD)) throw new Malformed('request-length');
  return {
    challengeId: m3.subarray(0, 16),
    ciphertext: m3.subarray(16, 16 + KEM),
    xPublic: m3.subarray(16 + KEM, HEAD),
    sealed: m3.subarray(HEAD),
  };
}

export const openRequest = (keys, sealed, associated) =>
  unpad(open(keys.requestKey, keys.requestIv, sealed, associated));

export const sealResponse = (keys, plaintext, associated) =>
  seal(keys.responseKey, keys.responseIv, pad(plaintext), associated);

export function openResponse(keys, m4, associated) {
  if (!isSealedLength(m4.length)) throw new Malformed('reply-length');
  return unpad(open(keys.responseKey, keys.responseIv, m4, associated));
}

/** {status, body} of a sealed reply: only this says whether the call succeeded. */
export function parseReply(plaintext) {
  const reply = parseJson(plaintext);
  if (reply === null || typeof reply !== 'object' || reply.type !== 'agent-response') {
    throw new Malformed('reply-type');
  }
  const { status, body } = reply;
  if (typeof status !== 'number' || !(status === 200 || (status >= 400 && status <= 599))) {
    throw new Malformed('reply-status');
  }
  if (status !== 200 && (body === null || typeof body !== 'object' || typeof body.code !== 'string')) {
    throw new Malformed('reply-body');
  }
  return { status, body };
}
