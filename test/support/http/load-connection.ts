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

/** The part of an answer that has arrived. A 200 keeps only its length and its end. */
class ArrivingAnswer {
  #bytes = Buffer.alloc(0);
  head = '';
  #bodyBytes = 0;
  #length: number | null = null;

  add(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    if (this.head === '') this.#readHead();
    else this.#bodyBytes += bytes.length;
    if (this.status === 200) this.#bytes = this.#bytes.subarray(-LAST_CHUNK.length);
  }

  #readHead(): void {
    const end = this.#bytes.indexOf(HEAD_END);
    if (end < 0) return;
    this.head = this.#bytes.toString('latin1', 0, end);
    // The CRLF after the head may be that before the last chunk.
    this.#bytes = this.#bytes.subarray(end + HEAD_END.length - 2);
    this.#bodyBytes = this.#bytes.length - 2;
    const length = /\r\ncontent-length: (\d+)/i.exec(this.head)?.[1];
    this.#length = length === undefined ? null : Number(length);
  }

  get status(): number {
    return Number(this.head.slice(9, 12));
  }

  get isWhole(): boolean {
    if (this.head === '') return false;
    if (this.#length !== null) return this.#bodyBytes >= this.#length;
    return this.#bytes.toString('latin1').endsWith(LAST_CHUNK);
  }

  /** The body of a rejection; empty for a 200. */
  get text(): string {
    return this.status === 200 ? '' : this.#bytes.toString('utf8', 2);
  }
}

/**
 * A connection that repeats one request. It parses only status, Retry-After and the end of an
 * answer: a cheap client leaves the CPU to the service.
 */
export class LoadConnection {
  readonly #socket: Socket;
  readonly #request: Buffer;
  #arriving = new ArrivingAnswer();
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
    this.#arriving.add(bytes);
    if (!this.#arriving.isWhole) return;
    const { status, head, text } = this.#arriving;
    this.#arriving = new ArrivingAnswer();
    this.#finish(status, head, text);
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
