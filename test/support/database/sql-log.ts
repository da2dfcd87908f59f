import type { TcpProxy } from './tcp-proxy.ts';

/** The statements and errors of proxied connections to PostgreSQL. */
export interface SqlLog {
  /** The distinct texts of the statements. */
  readonly texts: ReadonlySet<string>;
  /** SQLSTATE of each error that PostgreSQL returned. */
  readonly errors: readonly string[];
  /** The number of statements. */
  count(): number;
}

const zero = (bytes: Buffer, from: number): number => bytes.indexOf(0, from);

/** The SQL of a Query or Parse message; null for other messages. */
function textOf(type: string, message: Buffer): string | null {
  if (type === 'Q') return message.toString('utf8', 0, zero(message, 0));
  if (type !== 'P') return null;
  const from = zero(message, 0) + 1;
  return message.toString('utf8', from, zero(message, from));
}

/** Splits a stream into messages: type byte, length including itself, payload. */
class Messages {
  #bytes: Buffer = Buffer.alloc(0);
  #hasBegun: boolean;
  readonly #take: (type: string, message: Buffer) => void;

  constructor(hasBegun: boolean, take: (type: string, message: Buffer) => void) {
    this.#hasBegun = hasBegun;
    this.#take = take;
  }

  add(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    for (;;) {
      // The startup message of a client has no type byte.
      const head = this.#hasBegun ? 1 : 0;
      if (this.#bytes.length < head + 4) return;
      const end = head + this.#bytes.readUInt32BE(head);
      if (this.#bytes.length < end) return;
      const type = head === 0 ? '' : String.fromCharCode(this.#bytes[0] ?? 0);
      this.#take(type, this.#bytes.subarray(head + 4, end));
      this.#bytes = this.#bytes.subarray(end);
      this.#hasBegun = true;
    }
  }
}

/** Logs the statements and errors of a proxy from its first connection on. */
export function logSql(proxy: TcpProxy): SqlLog {
  const texts = new Set<string>();
  const errors: string[] = [];
  let count = 0;
  const out = new Map<number, Messages>();
  const back = new Map<number, Messages>();
  const onRequest = (type: string, message: Buffer): void => {
    const text = textOf(type, message);
    if (text !== null) texts.add(text);
    if (type === 'Q' || type === 'E') count += 1;
  };
  const onReply = (type: string, message: Buffer): void => {
    if (type !== 'E') return;
    const [, code = '?????'] = /(?:^|\0)C(\w{5})\0/.exec(message.toString('latin1')) ?? [];
    errors.push(code);
  };
  proxy.onBytes((bytes, direction, connection) => {
    const side = direction === 'out' ? out : back;
    let messages = side.get(connection);
    if (!messages) {
      messages = new Messages(direction === 'back', direction === 'out' ? onRequest : onReply);
      side.set(connection, messages);
    }
    messages.add(bytes);
  });
  return { texts, errors, count: () => count };
}
