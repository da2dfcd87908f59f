// A receiver process that fails at random: it reads the changes of a link and appends them to a
// file, and records each failure in another one. Arguments: the files, a port, and a secret.
import { appendFileSync, existsSync, readFileSync, truncateSync } from 'node:fs';
import { createServer } from 'node:http';
import { Webhook } from 'standardwebhooks';

const [changes = '', failures = '', port = '0', secrets = ''] = process.argv.slice(2);
const webhooks = secrets.split(',').map((each) => new Webhook(each));
const key = process.env['SERVICE_KEY'] ?? '';

/** Share of the requests that fail, and most failures of a message: a sender gives up after ten. */
const FAILING = 0.78;
const FAILURES_MAX = 6;

const failed = new Map<string, number>();

/** The positions of all stored changes; removes a partial line that a kill left. */
function storedPositions(): Set<string> {
  const text = existsSync(changes) ? readFileSync(changes, 'utf8') : '';
  const end = text.lastIndexOf('\n') + 1;
  if (end < text.length) truncateSync(changes, Buffer.byteLength(text.slice(0, end)));
  const lines = text.slice(0, end).split('\n').slice(0, -1);
  return new Set(lines.map((line) => JSON.parse(line).seq));
}

const stored = storedPositions();

/** Follows a link to its last page, and stores what is new. */
async function follow(link: string): Promise<void> {
  let address = link;
  for (let hasMore = true; hasMore; ) {
    const headers = { 'x-api-key': key, accept: 'application/x-ndjson' };
    const answer = await fetch(address, { headers });
    if (!answer.ok) throw new Error(await answer.text());
    const lines = (await answer.text()).split('\n').filter((line) => line !== '');
    for (const line of lines) {
      const { seq } = JSON.parse(line);
      if (stored.has(seq)) continue;
      appendFileSync(changes, `${line}\n`);
      stored.add(seq);
    }
    const next = new URL(address);
    next.searchParams.set('after', answer.headers.get('x-next-seq') ?? '');
    address = next.href;
    hasMore = answer.headers.get('x-has-more') === 'true';
  }
}

/** True if one of the secrets made the signature. */
function isSigned(id: string, stamp: string, signature: string, text: string): boolean {
  const at = new Date(Number(stamp) * 1_000);
  return webhooks.some((each) => each.sign(id, at, text) === signature);
}

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  const [id, stamp, signature] = ['id', 'timestamp', 'signature'].map((name) =>
    String(request.headers[`webhook-${name}`]),
  ) as [string, string, string];
  const times = failed.get(id) ?? 0;
  const fails = times < FAILURES_MAX && Math.random() < FAILING;
  if (fails) {
    failed.set(id, times + 1);
    appendFileSync(failures, '.');
  }
  const way = Math.random();
  try {
    if (!isSigned(id, stamp, signature, text)) throw new Error('the signature is wrong');
    if (fails && way < 0.3) request.socket.destroy();
    else if (fails && way < 0.6) response.writeHead(500).end();
    else {
      await follow(JSON.parse(text).data.changes);
      // The changes are stored, and the answer is lost.
      if (fails) request.socket.destroy();
      else response.writeHead(204).end();
    }
  } catch (error) {
    console.error(error);
    response.writeHead(500).end();
  }
});
server.listen(Number(port), '127.0.0.1', () => console.log('listening'));
