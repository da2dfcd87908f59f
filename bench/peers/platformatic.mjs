/** Platformatic DB on the same tables, as a GraphQL server. */
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@platformatic/db';

const folder = await mkdtemp(join(tmpdir(), 'bench-platformatic-'));
await writeFile(join(folder, 'package.json'), '{"name":"bench-platformatic","type":"module"}');
const app = await create(folder, {
  server: { hostname: '127.0.0.1', port: 0, logger: { level: 'error' } },
  db: {
    connectionString: process.env.DATABASE_URL,
    graphql: true,
    openapi: false,
    // It does not start with a table whose key is that of another table.
    ignore: { price_calendar: true },
    limit: { default: 1000, max: 10_000_000 },
    poolSize: 8,
  },
  watch: false,
});
await app.init?.();
await app.start({ listen: true });
console.log(`ready ${app.url ?? app.getUrl?.()}`);
