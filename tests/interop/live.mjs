// Talk to a running broker: reads {descriptor, calls} from standard input and prints what came of it.

import * as protocol from './protocol.mjs';
import { Client, Refused } from './client.mjs';
import { Malformed } from './strict-json.mjs';

async function standardInput() {
  const parts = [];
  for await (const part of process.stdin) parts.push(part);
  return JSON.parse(Buffer.concat(parts).toString('utf-8'));
}

async function clear(work) {
  try {
    await work();
  } catch (error) {
    if (error instanceof Refused) {
      return { status: error.reply.status, body: error.reply.body.toString('hex') };
    }
    throw error;
  }
  return 'accepted';
}

/** A real M2 with one bit changed in each of its parts: which rule notices each. */
function tampered(client, { m1, m2, challenge }) {
  const pathBytes = m2.length - 1692 - 64 - 4627 - challenge.binding.length - 48;
  const signatures = 1692 + pathBytes;
  const places = {
    leaf: 40,
    path: pathBytes ? 1692 : undefined,
    'ed25519 signature': signatures + 3,
    'ml-dsa signature': signatures + 64 + 100,
    binding: signatures + 64 + 4627 + challenge.binding.length - 1,
    'binding mac': m2.length - 1,
  };
  const found = {};
  for (const [name, at] of Object.entries(places)) {
    if (at === undefined) continue;
    const changed = Buffer.from(m2);
    changed[at] ^= 1;
    try {
      protocol.checkChallenge(protocol.parseChallenge(changed), client.pinned, client.keys, m1);
      found[name] = 'accepted';
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      found[name] = error.rule;
    }
  }
  return found;
}

const { descriptor, calls } = await standardInput();
const client = new Client(descriptor);
const results = [];
for (const { action, args } of calls) results.push(await client.call(action, args));

const opened = await client.challenge();
const notices = tampered(client, opened);

// The same M3 twice: the second finds neither a fresh nonce nor a challenge.
const envelope = Buffer.from(JSON.stringify({ type: 'agent-request', action: 'sessions', args: {} }));
const request = client.request(opened, envelope);
const first = await client.post(protocol.AGENT_ROUTE, request.headers, request.body);
const status = protocol.parseReply(protocol.openResponse(request.keys, first.body, request.associated)).status;
const replayed = await client.post(protocol.AGENT_ROUTE, request.headers, request.body);

const stranger = new Client({ ...descriptor, token: '00'.repeat(32) });
const output = {
  results,
  notices,
  once: status,
  replayed: { status: replayed.status, body: replayed.body.toString('hex') },
  stranger: await clear(() => stranger.call('sessions', {})),
};
client.close();
stranger.close();
process.stdout.write(JSON.stringify(output));
