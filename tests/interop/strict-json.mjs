// Strict JSON, as docs/protocol.md asks for: JSON.parse keeps the last of two equal keys, rounds what it cannot
// hold and lets lone surrogates pass.

const MAX_DEPTH = 16;
const MAX_INTEGER = 2n ** 53n;

/** Bytes or text that the protocol does not accept. `rule` is the name that the vectors use. */
export class Malformed extends Error {
  constructor(rule) {
    super(rule);
    this.rule = rule;
  }
}

/** A number written with a fraction or an exponent: never an integer, whatever its value. */
export class Real {
  constructor(value) {
    this.value = value;
  }
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const ESCAPES = { '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

class Parser {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  space() {
    while (' \t\n\r'.includes(this.text[this.at] ?? 'x')) this.at += 1;
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at = pattern.lastIndex;
    return found;
  }

  expect(character) {
    if (this.text[this.at] !== character) throw new Malformed('json');
    this.at += 1;
  }

  value(depth) {
    this.space();
    const next = this.text[this.at];
    if (next === '{') return this.object(depth + 1);
    if (next === '[') return this.array(depth + 1);
    if (next === '"') return this.string();
    for (const [word, value] of [['null', null], ['true', true], ['false', false]]) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    for (const word of ['NaN', 'Infinity', '-Infinity']) {
      if (this.text.startsWith(word, this.at)) throw new Malformed('not-a-number');
    }
    return this.number();
  }

  number() {
    const found = this.match(NUMBER);
    if (!found) throw new Malformed('json');
    const real = found[1] !== undefined || found[2] !== undefined;
    if (!real && found[0].length > 17) throw new Malformed('number-range');
    const size = real ? Math.abs(Number(found[0])) : BigInt(found[0].replace('-', ''));
    if (size > MAX_INTEGER) throw new Malformed('number-range');
    return real ? new Real(Number(found[0])) : Number(found[0]);
  }

  string() {
    this.expect('"');
    let result = '';
    for (;;) {
      result += this.match(PLAIN)[0];
      const stop = this.text[this.at];
      this.at += 1;
      if (stop === '"') break;
      if (stop !== '\\') throw new Malformed('json');
      const escape = this.text[this.at];
      this.at += 1;
      if (escape === 'u') {
        const digits = this.match(/[0-9a-fA-F]{4}/y);
        if (!digits) throw new Malformed('json');
        result += String.fromCharCode(parseInt(digits[0], 16));
      } else if (Object.hasOwn(ESCAPES, escape ?? '')) {
        result += ESCAPES[escape];
      } else {
        throw new Malformed('json');
      }
    }
    if (!result.isWellFormed()) throw new Malformed('json');
    return result;
  }

  array(depth) {
    if (depth > MAX_DEPTH) throw new Malformed('depth');
    const result = [];
    this.expect('[');
    this.space();
    if (this.text[this.at] === ']') {
      this.at += 1;
      return result;
    }
    for (;;) {
      result.push(this.value(depth));
      this.space();
      if (this.text[this.at] !== ',') break;
      this.at += 1;
    }
    this.expect(']');
    return result;
  }

  object(depth) {
    if (depth > MAX_DEPTH) throw new Malformed('depth');
    const result = Object.create(null);
    this.expect('{');
    this.space();
    if (this.text[this.at] === '}') {
      this.at += 1;
      return result;
    }
    for (;;) {
      this.space();
      const key = this.string();
      if (key in result) throw new Malformed('duplicate-key');
      this.space();
      this.expect(':');
      result[key] = this.value(depth);
      this.space();
      if (this.text[this.at] !== ',') break;
      this.at += 1;
    }
    this.expect('}');
    return result;
  }
}

/** One value from UTF-8 bytes, or Malformed. */
export function parseJson(bytes) {
  let text;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Malformed('json');
  }
  const parser = new Parser(text);
  const value = parser.value(0);
  parser.space();
  if (parser.at !== text.length) throw new Malformed('trailing-bytes');
  return value;
}
