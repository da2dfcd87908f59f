import { connect, type Socket } from 'node:net';
import type { HttpRequest, Target } from '../process/load.ts';

/** The parsed parts of an answer; status 0 for none. */
export interface ConnectionAnswer {
  readonly status: number;
  readonly headers: { readonly 'retry-after'?: string };
  /** The body; empty for a 200. */
  readonly text: string;
  /** Time from the due time to the last byte. */
  readonly ms: number;
  /** Delay between due time and sending, for lack of a connection or CPU. */
  readonly lateMs: number;
  /** End time by `sharedNow()`. */
  readonly endedAt: number;
}

/** A clock shared by threads: `performance.now()` starts at 0 in each. */
export const sharedNow = (): number => performance.timeOrigin + performance.now();

const HEAD_END = '\r\n\r\n';
const LAST_CHUNK = '\r\n0\r\n\r\n';

/** The bytes of a request. */
function bytesOf({ key }: Target, { method, path, body }: HttpRequest): Buffer {
  const text = body?.toString() ?? '';
  const lines = [
    `${method ?? (body === undefined ? 'GET' : 'POST')} ${path} HTTP/1.1`,
    'host: test',
    key.startsWith('ey') ? `authorization: Bearer ${key}` : `x-api-key: ${key}`,
    ...(body === undefined ? [] : ['content-type: application/json']),
    `content-length: ${Buffer.byteLength(text)}`,
  ];
  return Buffer.from(`${lines.join('\r\n')}${HEAD_END}${text}`);
}

/** The head and the body offset of a complete answer; else null. */
function wholeOf(bytes: Buffer): { head: string; bodyAt: number } | null {
  const end = bytes.indexOf(HEAD_END);
  if (end < 0) return null;
  const head = bytes.toString('latin1', 0, end);
  const bodyAt = end + HEAD_END.length;
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
  const isWhole =
    length === undefined
      ? // The CRLF after the head may be that before the last chunk.
        bytes.toString('latin1', Math.max(end, bytes.length - LAST_CHUNK.length)) === LAST_CHUNK
      : bytes.length >= bodyAt + Number(length);
  return isWhole ? { head, bodyAt } : null;
}

/**
 * A connection that repeats one request. It parses only status, Retry-After and the end of an
 * answer: a cheap client leaves the CPU to the service.
 */
export class LoadConnection {
  readonly #socket: Socket;
  readonly #request: Buffer;
  #held: Buffer | null = null;
  #end: ((answer: ConnectionAnswer) => void) | null = null;
  #dueAt = 0;
  #sentAt = 0;

  constructor(target: Target, ask: HttpRequest) {
    this.#request = bytesOf(target, ask);
    this.#socket = connect({ port: target.port, host: '127.0.0.1', noDelay: true });
    this.#socket.on('data', (bytes) => this.#read(bytes));
    this.#socket.on('error', () => {});
    this.#socket.on('close', () => this.#finish(0, '', ''));
  }

  /** True if a request may be sent over it. */
  get isOpen(): boolean {
    return this.#socket.writable && !this.#socket.readableEnded;
  }

  /** Sends the request and waits for its answer; it never throws. */
  ask(dueAt = sharedNow()): Promise<ConnectionAnswer> {
    this.#dueAt = dueAt;
    this.#sentAt = sharedNow();
    return new Promise((resolve) => {
      this.#end = resolve;
      if (this.#socket.closed) this.#finish(0, '', '');
      else this.#socket.write(this.#request);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(bytes: Buffer): void {
    const held = this.#held === null ? bytes : Buffer.concat([this.#held, bytes]);
    const whole = wholeOf(held);
    this.#held = whole === null ? held : null;
    if (whole === null) return;
    const status = Number(whole.head.slice(9, 12));
    this.#finish(status, whole.head, status === 200 ? '' : held.toString('utf8', whole.bodyAt));
  }

  #finish(status: number, head: string, text: string): void {
    const end = this.#end;
    this.#end = null;
    const wait = status === 200 ? undefined : /\r\nretry-after: (\d+)/i.exec(head)?.[1];
    const headers = wait === undefined ? {} : { 'retry-after': wait };
    const endedAt = sharedNow();
    const [ms, lateMs] = [endedAt - this.#dueAt, this.#sentAt - this.#dueAt];
    end?.({ status, headers, text, ms, lateMs, endedAt });
  }
}
