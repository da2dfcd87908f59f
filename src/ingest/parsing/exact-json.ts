/** A JSON number with its original digits. */
export class JsonNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type JsonValue = null | boolean | string | JsonNumber | JsonValue[] | JsonObject;
export type JsonObject = Map<string, JsonValue>;

/**
 * The text is not valid JSON, or an object has a duplicate name; the message states the position.
 */
export class JsonError extends Error {
  override readonly name = 'JsonError';
}

const DEPTH_MAX = 8;
const SPACE = /[ \t\r\n]*/y;
const CONTROL = /\p{Cc}/u;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y;
const WORDS: readonly (readonly [string, boolean | null])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
];

/**
 * JSON parser (RFC 8259) that preserves the digits of numbers and rejects duplicate names.
 * JSON.parse rounds long numbers and drops all but the last of duplicate names.
 */
class JsonReader {
  private readonly text: string;
  private at = 0;

  constructor(text: string) {
    this.text = text;
  }

  document(): JsonValue {
    const value = this.value(0);
    this.skipSpace();
    if (this.at < this.text.length) this.fail('nothing may follow the value');
    return value;
  }

  private fail(message: string): never {
    throw new JsonError(`${message}, at character ${this.at + 1}`);
  }

  private skipSpace(): void {
    const code = this.text.charCodeAt(this.at);
    if (code > 0x20) return;
    SPACE.lastIndex = this.at;
    SPACE.exec(this.text);
    this.at = SPACE.lastIndex;
  }

  /** Consumes a character if it comes next. */
  private takes(character: string): boolean {
    this.skipSpace();
    if (this.text[this.at] !== character) return false;
    this.at += 1;
    return true;
  }

  private token(pattern: RegExp): string | null {
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.text);
    if (!match) return null;
    this.at = pattern.lastIndex;
    return match[0];
  }

  /** Finds the closing quote of a string that starts at `start`. */
  private endOfString(start: number): number {
    for (let end = this.text.indexOf('"', start); end >= 0; end = this.text.indexOf('"', end + 1)) {
      let before = end;
      while (this.text[before - 1] === '\\') before -= 1;
      if ((end - before) % 2 === 0) return end;
    }
    return this.fail('the text in quotation marks has no end');
  }

  private string(): string {
    if (!this.takes('"')) this.fail('a text in quotation marks was expected');
    const end = this.endOfString(this.at);
    const token = this.text.slice(this.at, end);
    if (CONTROL.test(token)) this.fail('the text holds a control character');
    if (!token.includes('\\')) {
      this.at = end + 1;
      return token;
    }
    try {
      const text = JSON.parse(`"${token}"`);
      this.at = end + 1;
      return text;
    } catch {
      return this.fail('the text holds a wrong escape');
    }
  }

  private value(depth: number): JsonValue {
    if (depth > DEPTH_MAX) this.fail(`nested more than ${DEPTH_MAX} deep`);
    this.skipSpace();
    if (this.text[this.at] === '"') return this.string();
    const number = this.token(NUMBER);
    if (number !== null) return new JsonNumber(number);
    if (this.takes('{')) return this.object(depth);
    if (this.takes('[')) return this.array(depth);
    for (const [word, value] of WORDS) {
      if (!this.text.startsWith(word, this.at)) continue;
      this.at += word.length;
      return value;
    }
    return this.fail('a JSON value was expected');
  }

  private object(depth: number): JsonObject {
    const object: JsonObject = new Map();
    if (this.takes('}')) return object;
    do {
      const name = this.string();
      if (object.has(name)) this.fail(`the name "${name}" appears twice`);
      if (!this.takes(':')) this.fail('":" was expected');
      object.set(name, this.value(depth + 1));
    } while (this.takes(','));
    if (!this.takes('}')) this.fail('"," or "}" was expected');
    return object;
  }

  private array(depth: number): JsonValue[] {
    const array: JsonValue[] = [];
    if (this.takes(']')) return array;
    do array.push(this.value(depth + 1));
    while (this.takes(','));
    if (!this.takes(']')) this.fail('"," or "]" was expected');
    return array;
  }
}

/**
 * Parses one JSON text; numbers keep their digits.
 * @throws JsonError for invalid JSON
 */
export const readJson = (text: string): JsonValue => new JsonReader(text).document();
