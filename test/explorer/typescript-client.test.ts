import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { explorerOn } from '../support/process/explorer.ts';

const CLIENT = readFileSync(new URL('../../clients/typescript/client.js', import.meta.url));

/** A page of another origin than that of the service, with the client beside it. */
const pages = createServer(({ url }, reply) => {
  const isClient = url === '/client.js';
  reply.setHeader('content-type', isClient ? 'text/javascript' : 'text/html');
  reply.end(isClient ? CLIENT : '<!doctype html><title>Desk</title>');
}).listen(0, '127.0.0.1');
await once(pages, 'listening');
t.teardown(() => {
  pages.closeAllConnections();
  pages.close();
});
const origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;

const database = await testDatabase(t, { seeded: true });
const explorer = await explorerOn(t, database, { CORS_ORIGINS: origin });

t.test('the TypeScript client runs in a page of an origin that the service allows', async (t) => {
  const { page } = await explorer.open(t);
  await page.goto(origin);
  const got = await page.evaluate(
    async ({ url, key, path }) => {
      const { createClient, rowsOf } = await import(path);
      const refusal = (call: Promise<unknown>) => call.catch((error: unknown) => error);
      const client = createClient({ url, key, onWarning: () => {} });
      const prices = await client.prices('nickel', { filters: { regions: ['Europe'] } });
      const first = await client.changes({ market: ['cobalt'], limit: 5_000 });
      let last = first;
      while (last.data.length > 0) {
        last = await client.changes({ market: ['cobalt'], after: last.nextSeq, wait: 1 });
      }
      const strange = await refusal(client.prices('nickle'));
      const late = await refusal(
        client.changes({ after: last.nextSeq, wait: 20 }, { timeoutMs: 300 }),
      );
      let keyless: unknown;
      try {
        createClient({ url });
      } catch (error) {
        keyless = error;
      }
      return {
        rows: rowsOf(prices).length,
        revision: prices.revision,
        changes: first.data.length,
        waited: [last.data.length, last.nextSeq, last.revision],
        status: (strange as { status: number }).status,
        late: String(late),
        keyless: String(keyless),
      };
    },
    { url: explorer.address, key: explorer.key, path: '/client.js' },
  );
  t.ok(got.rows > 10 && got.changes > 10);
  t.match(got.revision, /^[0-9a-z]+\.\d+$/);
  t.match(got.waited, [0, /^[0-9a-z]+\.\d+$/, /^[0-9a-z]+\.\d+$/]);
  t.equal(got.status, 404);
  t.match(got.late, /PricesError: .* did not answer within 300 ms/);
  t.match(got.keyless, /set COMMODITY_PRICES_KEY, or give key/);
});
