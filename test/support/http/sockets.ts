import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type t from 'tap';
import { buildApp } from '../../../src/app.ts';
import { ALL_MARKETS } from '../../../src/catalog/scopes.ts';
import { configOf } from '../../../src/config/config.ts';
import { loggerOf } from '../../../src/process/log.ts';
import type { TestDatabase } from '../database/database.ts';
import { addressOf } from './address.ts';
import { NO_LIMITS } from './no-limits.ts';
import { keyFor } from './service.ts';

type Test = Pick<typeof t, 'teardown'>;

/** A service that listens on a port of this machine, with its log. */
export interface Listening {
  readonly app: FastifyInstance;
  readonly port: number;
  readonly key: string;
  /** Lines of the log, as they were written. */
  readonly lines: readonly string[];
  /** The messages of what the service holds for its own failures. */
  failures(): string[];
}

const ERROR = 50;

/** Starts the service over a database of a test; settings as in the environment. */
export async function listening(
  test: Test,
  database: TestDatabase,
  env: Readonly<Record<string, string>> = {},
): Promise<Listening> {
  const lines: string[] = [];
  const logger = loggerOf('trace', { write: (line) => lines.push(line) });
  const app = await buildApp({
    config: configOf({ ...NO_LIMITS, ...env }),
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

/** Waits until something is so; fails with its name when it takes longer than two minutes. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 120_000;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`it did not come: ${what}`);
    await pause(5);
  }
}

/** One end of a connection, which reads only when told to. */
export class Caller {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  #received: Buffer[] = [];

  constructor(test: Test, port: number) {
    this.socket = connect({ port, host: '127.0.0.1' });
    // A reset is what some of these tests are about: it shows as a connection that closed.
    this.socket.on('error', () => {});
    this.socket.on('data', (bytes) => this.#received.push(bytes));
    this.closed = new Promise((resolve) => this.socket.once('close', () => resolve()));
    test.teardown(() => this.socket.destroy());
  }

  get text(): string {
    return Buffer.concat(this.#received).toString('latin1');
  }

  /** The end of what came. */
  get tail(): string {
    return Buffer.concat(this.#received.slice(-3)).toString('latin1');
  }

  get bytes(): number {
    return this.#received.reduce((sum, each) => sum + each.length, 0);
  }

  /** Waits for the first bytes, and reads no more until it is told to. */
  async firstBytes(): Promise<void> {
    this.socket.once('data', () => this.socket.pause());
    await until('the answer begins', () => this.bytes > 0);
  }

  /** Waits until the other side closed the connection; fails when it takes two minutes. */
  async ended(): Promise<string> {
    await until('the connection closes', () => this.socket.closed);
    return this.text;
  }
}

/** Sends bytes, and reads until the service closes the connection. */
export async function exchange(test: Test, port: number, ...parts: (string | Buffer)[]) {
  const caller = new Caller(test, port);
  for (const part of parts) caller.socket.write(part);
  return answerOf(await caller.ended());
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies as they are.
  readonly json: any;
}

/** Joins the chunks of a body; null when the last one, which is empty, never came. */
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

/** Reads the text of one answer. */
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
  { key }: Pick<Listening, 'key'>,
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

/** The text of a GET that is the last of its connection. */
export const getText = (path: string, key: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nx-api-key: ${key}\r\n\r\n`;

/** Waits until a service whose database was away answers a question for prices again. */
export const answersAgain = (test: Test, service: Listening, slug: string): Promise<void> =>
  until('the service answers again', async () => {
    const question = postText(service, slug, {}, 'Connection: close\r\n');
    return (await exchange(test, service.port, question)).status === 200;
  });
