/** A Fastify hello world: parses the JSON body of a POST and sends a tiny answer. */
import Fastify from 'fastify';

const app = Fastify({ logger: false });
app.post('/', async () => ({ hello: 'world' }));
const address = await app.listen({ port: 0, host: '127.0.0.1' });
console.log(`ready ${address}`);
