// A client of the broker over node:http. Node's fetch will not do: it adds Sec-Fetch headers, as a browser does.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import http from 'node:http';

import * as protocol from './protocol.mjs';

const MAX_REPLY = 128 * 1024;
const CHALLENGE_LIFETIME_MS = 10_000n;

/** Milliseconds of a clock that never steps and that both ends share: on Linux the time since boot. */
export function now() {
  if (process.platform !== 'linux') return process.hrtime.bigint() / 1_000_000n;
  return BigInt(Math.round(Number(readFileSync('/proc/uptime', 'utf-8').split(' ')[0]) * 1000));
}

/** The broker's answer in the clear: nothing in it is proven. */
export class Refused extends Error {
  constructor(reply) {
    super(`refused with ${reply.status}`);
    this.reply = reply;
  }
}

export class Client {
  constructor(descriptor) {
    const bytes = (name) => Buffer.from(descriptor[name], 'hex');
    this.pinned = {
      edPublic: bytes('ed_public'),
      pqPublic: bytes('pq_public'),
      instance: bytes('instance'),
      id: descriptor.principal_id,
      generation: descriptor.generation,
    };
    const expected = protocol.instanceId(this.pinned.edPublic, this.pinned.pqPublic, descriptor.address);
    if (descriptor.protocol !== protocol.SUITE || !expected.equals(this.pinned.instance)) {
      throw new Error('the descriptor does not hold together');
    }
    this.keys = protocol.capabilityKeys({ token: bytes('token'), ...this.pinned });
    [this.host, this.port] = descriptor.address.split(':');
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  }

  close() {
    this.agent.destroy();
  }

  /** One exchange of HTTP: {status, headers, body}. */
  post(route, headers, body) {
    return new Promise((resolve, reject) => {
      const request = http.request({
        host: this.host,
        port: this.port,
        agent: this.agent,
        method: protocol.METHOD,
        path: route,
        headers: {
          'content-type': protocol.CONTENT_TYPE,
          'content-length': body.length,
          ...Object.fromEntries(headers),
        },
      });
      request.on('error', reject);
      request.on('response', (response) => {
        const parts = [];
        let length = 0;
        response.on('data', (part) => {
          parts.push(part);
          length += part.length;
          if (length > MAX_REPLY) response.destroy(new Error('the reply is too large'));
        });
        response.on('error', reject);
        response.on('end', () => {
          resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(parts) });
        });
      });
      request.end(body);
    });
  }

  prove(name, route, key, body) {
    const proof = { id: this.pinned.id, generation: this.pinned.generation };
    proof.timestamp = now();
    proof.nonce = randomBytes(32);
    const input = protocol.macInput(name, { ...this.pinned, ...proof, route, body });
    proof.mac = protocol.hmac(key, input);
    return { input, ...proof, headers: protocol.proofHeaders(proof) };
  }

  /** M1 and M2: a challenge that passed every check. */
  async challenge() {
    const body = protocol.challengeBody();
    const m1 = this.prove('challenge-request', protocol.CHALLENGE_ROUTE, this.keys.challenge, body);
    const reply = await this.post(protocol.CHALLENGE_ROUTE, m1.headers, body);
    if (reply.status !== 200) throw new Refused(reply);
    const challenge = protocol.parseChallenge(reply.body);
    protocol.checkChallenge(challenge, this.pinned, this.keys, m1);
    const late = now() - m1.timestamp >= CHALLENGE_LIFETIME_MS || now() >= challenge.leaf.notAfter;
    if (late) throw new Error('the challenge came too late');
    return { m1, m2: reply.body, challenge };
  }

  /** M3 for a challenge, ready to be sent, and what opens its answer. */
  request({ m1, m2, challenge }, plaintext) {
    const { ciphertext, secret } = protocol.encapsulate(challenge.leaf.kemPublic);
    const ours = protocol.xKey(randomBytes(32));
    const hash = protocol.transcript(m1.input, m1.mac, m2, ciphertext, ours.public);
    const shared = ours.exchange(challenge.leaf.xPublic);
    const keys = protocol.callKeys(this.keys.psk, secret, shared, hash);
    const { challengeId } = challenge.leaf;
    const associated = protocol.requestAssociated({ ...this.pinned, challengeId, hash });
    const sealed = protocol.sealRequest(keys, plaintext, associated);
    const body = protocol.joinRequest(challengeId, ciphertext, ours.public, sealed);
    const proof = this.prove('agent-request-mac', protocol.AGENT_ROUTE, this.keys.request, body);
    return { keys, body, headers: proof.headers, associated: protocol.responseAssociated(hash, body) };
  }

  /** {status, body} as the broker sealed it. */
  async call(action, args) {
    const envelope = { type: 'agent-request', action, args };
    const request = this.request(await this.challenge(), Buffer.from(JSON.stringify(envelope)));
    const reply = await this.post(protocol.AGENT_ROUTE, request.headers, request.body);
    if (reply.status !== 200) throw new Refused(reply);
    return protocol.parseReply(protocol.openResponse(request.keys, reply.body, request.associated));
  }
}
