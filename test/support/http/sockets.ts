import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type t from 'tap';
import { buildApp } from '../../../src/app.ts';
import { ALL_MARKETS } from '../../../src/catalog/scopes.ts';
import { loggerOf } from '../../../src/process/log.ts';
import type { TestDatabase } from '../database/database.ts';
import { addressOf } from './address.ts';
import { keyFor } from './service.ts';
import { type TestSettings, testConfig } from './test-config.ts';

type Test = Pick<typeof t, 'teardown'>;

/** A service that listens on a port of this machine, with its log. */
export interface ListeningService {
  readonly app: FastifyInstance;
  readonly port: number;
  readonly key: string;
  /** The log lines. */
  readonly lines: readonly string[];
  /** The messages of log lines at level error. */
  failures(): string[];
}

const ERROR = 50;

/** Starts the service over a database of a test. */
export async function startListening(
  test: Test,
  database: TestDatabase,
  settings: TestSettings = {},
): Promise<ListeningService> {
  const lines: string[] = [];
  const logger = loggerOf('trace', { write: (line) => lines.push(line) });
  const app = await buildApp({
    config: testConfig(settings),
    client: database.client,
    logger,
  });
  test.teardown(async () => {
    app.server.closeAllConnections();
    await app.close();
  });
  const { port } = new URL(await addressOf(app));
  const key = await keyFor(database, [ALL_MARKETS]);
  const failures = () =>
    lines
      .map((line) => JSON.parse(line) as { level: number; msg: string; err?: { message: string } })
      .filter(({ level }) => level >= ERROR)
      .map(({ msg, err }) => `${msg}: ${err?.message}`);
  return { app, port: Number(port), key, lines, failures };
}

/** Waits for a condition; fails with its name after two minutes. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 120_000;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`not true within two minutes: ${what}`);
    await pause(5);
  }
}

/** A raw client connection that can pause reading. */
export class RawConnection {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  #received: Buffer[] = [];

  constructor(test: Test, port: number) {
    this.socket = connect({ port, host: '127.0.0.1' });
    // Some tests expect a reset; it shows as a closed connection.
    this.socket.on('error', () => {});
    this.socket.on('data', (bytes) => this.#received.push(bytes));
    this.closed = new Promise((resolve) => this.socket.once('close', () => resolve()));
    test.teardown(() => this.socket.destroy());
  }

  get text(): string {
    return Buffer.concat(this.#received).toString('latin1');
  }

  /** The end of the received text. */
  get tail(): string {
    return Buffer.concat(this.#received.slice(-3)).toString('latin1');
  }

  get bytes(): number {
    return this.#received.reduce((sum, each) => sum + each.length, 0);
  }

  /** Waits for the first bytes, then pauses reading. */
  async firstBytes(): Promise<void> {
    this.socket.once('data', () => this.socket.pause());
    await until('the answer begins', () => this.bytes > 0);
  }

  /** Waits until the service closes the connection; fails after two minutes. */
  async ended(): Promise<string> {
    await until('the connection closes', () => this.socket.closed);
    return this.text;
  }
}

/** Sends bytes, and reads until the service closes the connection. */
export async function exchange(test: Test, port: number, ...parts: (string | Buffer)[]) {
  const connection = new RawConnection(test, port);
  for (const part of parts) connection.socket.write(part);
  return answerOf(await connection.ended());
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read untyped bodies.
  readonly json: any;
}

/** Joins the chunks of a body; null if the final empty chunk is missing. */
export function dechunked(body: string): string | null {
  const parts: string[] = [];
  for (let at = 0; ; ) {
    const end = body.indexOf('\r\n', at);
    const size = Number.parseInt(body.slice(at, end), 16);
    if (end < 0 || Number.isNaN(size) || body.length < end + 2 + size + 2) return null;
    if (size === 0) return parts.join('');
    parts.push(body.slice(end + 2, end + 2 + size));
    at = end + 2 + size + 2;
  }
}

/** Parses one answer. */
export function answerOf(text: string): RawAnswer {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [first = '', ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf(':');
      return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()];
    }),
  );
  const body = rest.join('\r\n\r\n');
  return {
    status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1] ?? 0),
    headers,
    body,
    get json() {
      return body === '' ? null : JSON.parse(body);
    },
  };
}

/** The text of a POST to a market. */
export function postText(
  { key }: Pick<ListeningService, 'key'>,
  slug: string,
  body: unknown,
  headers = '',
): string {
  const json = JSON.stringify(body);
  return (
    `POST /v3/prices/${slug} HTTP/1.1\r\nHost: test\r\nx-api-key: ${key}\r\n${headers}` +
    `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(json)}\r\n\r\n${json}`
  );
}

/** The text of a GET with `Connection: close`. */
export const getText = (path: string, key: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nx-api-key: ${key}\r\n\r\n`;

/** Waits until a service answers a price request again after a database outage. */
export const answersAgain = (test: Test, service: ListeningService, slug: string): Promise<void> =>
  until('the service answers again', async () => {
    const question = postText(service, slug, {}, 'Connection: close\r\n');
    return (await exchange(test, service.port, question)).status === 200;
  });
