/**
 * A typical production stack around prepared bytes: Fastify with security headers, a rate limit,
 * load shedding, an API key compared in memory, and logs. It queries no database, so its answers
 * may be stale.
 *
 *     API_KEY=… node bench/servers/stack.ts FOLDER      each file is served at /<its name>
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Fastify from 'fastify';

// Variable names: type checks must pass without the bench packages.
const plugin = async (name: string) => (await import(name)).default;

const folder = process.argv[2] ?? '.';
const digest = (key: string): Buffer => createHash('sha256').update(key).digest();
const expected = digest(process.env['API_KEY'] ?? '');

const app = Fastify({ logger: { level: 'warn' } });
await app.register(await plugin('@fastify/helmet'));
await app.register(await plugin('@fastify/under-pressure'), { maxEventLoopDelay: 1_000 });
await app.register(await plugin('@fastify/rate-limit'), { max: 1e9, timeWindow: '1 minute' });
app.addHook('onRequest', async (request, reply) => {
  const given = digest(String(request.headers['x-api-key'] ?? ''));
  if (!timingSafeEqual(given, expected)) await reply.code(401).send({ error: 'unknown key' });
});
for (const name of readdirSync(folder)) {
  const body = readFileSync(join(folder, name));
  app.post(`/${name}`, async (_request, reply) => reply.type('application/json').send(body));
}
console.log(`ready ${await app.listen({ port: 0, host: '127.0.0.1' })}`);
