import { isUtf8 } from 'node:buffer';

/** The nesting that a body may have, by default. */
const DEPTH_MAX = 8;

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON has them only as escapes.
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const WORDS: Readonly<Record<string, unknown>> = { true: true, false: false, null: null };

/**
 * Reads JSON by hand, as RFC 8259 and the contract have it: UTF-8 without a byte-order mark, each
 * member named once, nested no deeper than the limit. The service's own reader is held to it.
 */
class StrictReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): unknown {
    const value = this.#value(0);
    this.#take(SPACE);
    if (this.#at < this.#text.length) throw new SyntaxError('more follows');
    return value;
  }

  #take(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found === undefined) return null;
    this.#at += found.length;
    return found;
  }

  /** Skips white space, then takes one character if it is this one. */
  #is(char: string): boolean {
    this.#take(SPACE);
    if (this.#text[this.#at] !== char) return false;
    this.#at += 1;
    return true;
  }

  #value(depth: number): unknown {
    if (this.#is('{')) return this.#object(depth + 1);
    if (this.#is('[')) return this.#array(depth + 1);
    const string = this.#take(STRING);
    if (string !== null) return JSON.parse(string);
    const number = this.#take(NUMBER);
    if (number !== null) return Number(number);
    const word = this.#take(/true|false|null/y);
    if (word === null) throw new SyntaxError('no value');
    return WORDS[word];
  }

  #object(depth: number): unknown {
    if (depth > DEPTH_MAX) throw new SyntaxError('nested too deep');
    const members = new Map<string, unknown>();
    if (this.#is('}')) return {};
    do {
      this.#take(SPACE);
      const name = this.#take(STRING);
      if (name === null || !this.#is(':')) throw new SyntaxError('no member');
      const key = JSON.parse(name) as string;
      if (members.has(key)) throw new SyntaxError('a member twice');
      members.set(key, this.#value(depth));
    } while (this.#is(','));
    if (!this.#is('}')) throw new SyntaxError('no end of the object');
    return Object.fromEntries(members);
  }

  #array(depth: number): unknown {
    if (depth > DEPTH_MAX) throw new SyntaxError('nested too deep');
    const items: unknown[] = [];
    if (this.#is(']')) return items;
    do items.push(this.#value(depth));
    while (this.#is(','));
    if (!this.#is(']')) throw new SyntaxError('no end of the array');
    return items;
  }
}

/** The value of a body; undefined when it is not JSON as the contract takes it. */
export function strictJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) return undefined;
  try {
    return new StrictReader(bytes.toString('utf8')).read();
  } catch {
    return undefined;
  }
}
