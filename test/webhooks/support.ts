import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { type AddressInfo, createServer as createPlainServer } from 'node:net';
import { Webhook } from 'standardwebhooks';
import type t from 'tap';
import { createKey } from '../../src/auth/keys/keys.ts';
import type { Scope } from '../../src/catalog/scopes.ts';
import type { Filter } from '../../src/webhooks/message.ts';
import { networksOf } from '../../src/webhooks/receiver.ts';
import { Sender, type SenderLine, type SenderOptions } from '../../src/webhooks/sender.ts';
import { addWebhook, type NewWebhookInfo } from '../../src/webhooks/subscriptions.ts';
import type { TestDatabase } from '../support/database/database.ts';

type Test = Pick<typeof t, 'teardown'>;

/** The networks of receivers on this machine. */
export const LOCAL = networksOf('127.0.0.0/8');

/** A message as a receiver got it. */
export interface Received {
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies that the library verified.
  readonly json: any;
}

/** A port of this machine that no program uses. */
export async function freePort(): Promise<number> {
  const server = createPlainServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** The status of an answer, with headers. */
export type Answering = (
  received: Received,
) => number | [number, Record<string, string>] | Promise<number | [number, Record<string, string>]>;

/** A receiver on this machine. */
export interface Receiver {
  readonly url: string;
  readonly received: Received[];
  readonly server: Server;
}

/** Starts a receiver, which answers 204 unless it is told otherwise. */
export async function startReceiver(
  test: Test,
  answer: Answering = () => 204,
  port = 0,
): Promise<Receiver> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const { headers } = request;
    const message = { id: String(headers['webhook-id']), headers, text, json: JSON.parse(text) };
    received.push(message);
    const answered = await answer(message);
    const [status, more] = Array.isArray(answered) ? answered : [answered, {}];
    response.writeHead(status, more).end();
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  test.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port: own } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${own}/bell`, received, server };
}

const EVERYTHING: Filter = { markets: null, codes: null, operations: null };

/** A subscription of a receiver with a key of its own. */
export async function subscribe(
  { db }: TestDatabase,
  url: string,
  filter: Partial<Filter> = {},
  scopes: readonly Scope[] = ['prices:*'],
): Promise<NewWebhookInfo> {
  const { id } = await createKey(db, { name: 'bell', scopes, expiresAt: null });
  return await addWebhook(db, { ...EVERYTHING, ...filter, url, key: id }, LOCAL);
}

/** A sender with a clock that the test sets. */
export interface TestSender {
  readonly sender: Sender;
  readonly lines: SenderLine[];
  /** The clock, in milliseconds. */
  nowMs: number;
  /** Makes and sends all that is due, until nothing is. */
  settle(): Promise<void>;
  /** Moves the clock to the next attempt. Returns false if no message waits. */
  advance(): Promise<boolean>;
}

/** A sender that runs rounds when the test asks for them. */
export function senderOn(
  test: Test,
  { db, pool }: TestDatabase,
  options: Partial<SenderOptions> = {},
): TestSender {
  const lines: SenderLine[] = [];
  const sender = new Sender({
    db,
    publicUrl: 'http://prices.test',
    graceMinutes: 60,
    networks: LOCAL,
    log: (line) => lines.push(line),
    now: () => made.nowMs,
    ...options,
  });
  test.teardown(() => sender.stop());
  const made: TestSender = {
    sender,
    lines,
    nowMs: Date.now(),
    settle: async () => {
      for (;;) {
        await sender.round();
        await sender.idle();
        const { rows } = await pool.query(
          `select from webhook_message m join webhook w on w.id = m.webhook_id
            where outcome is null and disabled_at is null and due_at <= $1
              and (paused_until is null or paused_until <= $1)`,
          [new Date(made.nowMs)],
        );
        if (rows.length === 0) return;
      }
    },
    advance: async () => {
      const { rows } = await pool.query<{ next: string | null }>(
        `select extract(epoch from min(greatest(due_at, paused_until)))::text as next
          from webhook_message m join webhook w on w.id = m.webhook_id
          where outcome is null and disabled_at is null`,
      );
      const next = rows[0]?.next ?? null;
      if (next === null) return false;
      made.nowMs = Math.max(made.nowMs, Math.ceil(Number(next) * 1_000));
      return true;
    },
  };
  return made;
}

/** Verifies a message as the library does. @throws WebhookVerificationError */
export const verified = (secret: string, { text, headers }: Received): unknown =>
  new Webhook(secret).verify(text, headers as Record<string, string>);
