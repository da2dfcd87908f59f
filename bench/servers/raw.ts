/**
 * Sends prepared answers from memory by node:http alone: the lower bound of the cost.
 *
 *     node bench/servers/raw.ts FOLDER      each file of the folder is served at /<its name>
 */
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

const folder = process.argv[2] ?? '.';
const bodies = new Map(
  readdirSync(folder).map((name) => [`/${name}`, readFileSync(join(folder, name))]),
);

const server = createServer((request, response) => {
  const body = bodies.get(request.url ?? '');
  request.resume();
  request.on('end', () => {
    response.writeHead(body ? 200 : 404, {
      'content-type': 'application/json',
      'content-length': body?.length ?? 0,
    });
    response.end(body);
  });
});
server.listen(0, '127.0.0.1', () => {
  console.log(`ready http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
