import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { DownloadError, download } from '../../../src/cli/load/download.ts';
import { prices } from '../../support/process/programs.ts';
import { makeFolder } from '../../support/run/folders.ts';
import { fixture, loadingDatabase } from '../support/loading.ts';
import { zipOf } from '../support/workbook.ts';

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** Starts a local server. @returns its address */
async function serve(test: Pick<typeof t, 'teardown'>, handler: Handler): Promise<string> {
  const server = createServer(handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const ask = (url: string, timeoutMs = 60_000) => download(url, timeoutMs, 2_000);

const csv = await readFile(fixture('ecb-hist.csv'));
const zip = zipOf([{ name: 'eurofxref-hist.csv', content: csv }]);

t.test('a file is downloaded whole, also through redirects', async (t) => {
  const agents = new Set<string>();
  const base = await serve(t, ({ url, headers }, response) => {
    agents.add(String(headers['user-agent']));
    const [, hops] = /^\/hop\/(\d)$/.exec(url ?? '') ?? [];
    if (!hops) return response.end(csv.subarray(0, 2_000));
    const location = hops === '1' ? `${base}/file?a=1` : `/hop/${Number(hops) - 1}`;
    response.writeHead(hops === '2' ? 301 : 307, { location }).end();
  });
  t.strictSame(await ask(`${base}/file`), csv.subarray(0, 2_000));
  t.strictSame(await ask(`${base}/hop/3`), csv.subarray(0, 2_000));
  t.strictSame([...agents], ['commodity-prices']);
  await t.rejects(ask(`${base}/hop/4`), { message: /redirects more than 3 times$/ });
});

const FAULTS: Readonly<Record<string, readonly [Handler, RegExp]>> = {
  'no such file': [
    (_, response) => response.writeHead(404).end('none'),
    /it answers 404 Not Found$/,
  ],
  'a server in trouble': [
    (_, response) => response.writeHead(503, { 'retry-after': '0' }).end(),
    /it answers 503/,
  ],
  'an answer without a file': [(_, response) => response.writeHead(204).end(), /it answers 204/],
  'a connection that is cut': [
    (_, response) => {
      response.writeHead(200, { 'content-length': '1000' }).write('Date,');
      setImmediate(() => response.destroy());
    },
    /: (the connection is cut|other side closed|socket hang up|read ECONNRESET|aborted)$/,
  ],
  'a connection that is refused at once': [
    (request) => request.socket.destroy(),
    /: (other side closed|socket hang up|read ECONNRESET)$/,
  ],
  'more bytes than are taken': [
    (_, response) => response.end(Buffer.alloc(2_001, 'x')),
    /it sends more than 2000 bytes$/,
  ],
  'an endless answer': [
    (_, response) => {
      const more = (): boolean => response.write('x'.repeat(500));
      response.on('drain', more);
      while (more());
    },
    /it sends more than 2000 bytes/,
  ],
  'many bytes in few': [
    (_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      response.end(gzipSync(Buffer.alloc(1_000_000)));
    },
    /it sends more than 2000 bytes/,
  ],
  'a redirect to http elsewhere': [
    (_, response) => response.writeHead(302, { location: 'http://127.0.0.2/x?secret=1' }).end(),
    /it redirects to http:\/\/127\.0\.0\.2\/x, which is not https$/,
  ],
  'a redirect to a file': [
    (_, response) => response.writeHead(302, { location: 'file:///etc/passwd' }).end(),
    /which is not https$/,
  ],
  'a redirect to nowhere': [
    (_, response) => response.writeHead(302).end(),
    /it redirects to nowhere$/,
  ],
};

t.test('a download that fails says why in one line, with the setting', async (t) => {
  for (const [what, [handler, reason]] of Object.entries(FAULTS)) {
    const base = await serve(t, handler);
    const error = await ask(`${base}/rates.zip?key=secret`).then(String, (failed) => failed);
    t.ok(error instanceof DownloadError, `${what}: ${error}`);
    t.match(error.message, reason, what);
    t.ok(error.message.startsWith(`ECB_URL: cannot download ${base}/rates.zip: `), what);
    t.notMatch(error.message, /secret|\n/, what);
  }
  // The port of an open client connection accepts no connections, and no other test can take it.
  const near = connect(Number(new URL(await serve(t, () => {})).port), '127.0.0.1');
  t.teardown(() => near.destroy());
  await once(near, 'connect');
  await t.rejects(ask(`http://127.0.0.1:${near.localPort}/`), { message: /ECONNREFUSED/ });
});

t.test('a download is repeated after 503 and 429, at most three times', async (t) => {
  let requests = 0;
  const base = await serve(t, ({ url }, response) => {
    requests += 1;
    if (url === '/file' && requests === 4) return response.end(csv.subarray(0, 2_000));
    response.writeHead(requests % 2 ? 503 : 429, { 'retry-after': '0' }).end('wait');
  });
  t.strictSame(await ask(`${base}/file`), csv.subarray(0, 2_000));
  requests = 0;
  await t.rejects(ask(base), { message: /it answers 429/ });
  t.equal(requests, 4);
});

t.test('a slow server times out, whether it is silent or drips', async (t) => {
  const silent = await serve(t, () => {});
  const message = /it takes longer than 200 ms$/;
  await t.rejects(ask(silent, 200), { message });
  const dripping = await serve(t, (_, response) => {
    const timer = setInterval(() => response.write('x'), 20);
    response.on('close', () => clearInterval(timer));
  });
  await t.rejects(ask(dripping, 200), { message });
});

t.test('the command loads what is new, is quiet when nothing is, and leaves no file', async (t) => {
  const { url: DATABASE_URL, pool } = await loadingDatabase(t);
  let sent: Buffer = zip;
  const base = await serve(t, (_, response) => response.end(sent));
  const folder = await makeFolder();
  t.teardown(folder.remove);
  const held = await readdir(folder.path);
  const ECB_URL = `${base}/stats/eurofxref-hist.zip`;
  const env = { DATABASE_URL, ECB_URL, TMPDIR: folder.path };
  const fetchRates = (...args: string[]) => prices(t, env, 'load', 'ecb', '--fetch', ...args);
  const first = await fetchRates();
  t.match(first, { code: 0, stderr: '', stdout: /^Loaded \(batch 1,/m });
  const state = async () => {
    const { rows } = await pool.query(
      'select (select count(*) from fx_rate) as rates, (select count(*) from load_batch) as loads',
    );
    return rows[0];
  };
  const { rates } = await state();
  t.ok(Number(rates) > 10);
  t.strictSame(await fetchRates(), { code: 0, stdout: '', stderr: '' }, 'the very file again');
  sent = csv;
  t.strictSame(await fetchRates(), { code: 0, stdout: '', stderr: '' }, 'the same rates again');
  t.match(JSON.parse((await fetchRates('--json')).stdout), { status: 'already-loaded' });
  const { rows } = await pool.query('select distinct file_name from load_batch');
  t.strictSame(rows, [{ file_name: 'eurofxref-hist.zip' }]);
  sent = Buffer.from(csv.toString().replace(/^(\d[^,]*,)[\d.]+/m, '$1 9.9999'));
  const revised = await fetchRates();
  t.match(revised, { code: 3, stderr: /eurofxref-hist\.zip:\d.*correction_not_allowed/ });
  t.strictSame(await state(), { rates, loads: '3' });
  t.strictSame(await readdir(folder.path), held, 'the downloaded file is removed');
});

t.test('a download that fails changes nothing and is exit code 1, in one line', async (t) => {
  const { url: DATABASE_URL, pool } = await loadingDatabase(t);
  const base = await serve(t, ({ url }, response) => {
    if (url === '/page') response.end('<!DOCTYPE html><p>Sorry</p>');
    else if (url === '/cut') response.end(zip.subarray(0, zip.length - 40));
    else response.writeHead(500).end();
  });
  const fetchRates = (path: string) =>
    prices(t, { DATABASE_URL, ECB_URL: `${base}${path}` }, 'load', 'ecb', '--fetch');
  const stderr = /^commodity-prices: ECB_URL: [^\n]+\n$/;
  t.match(await fetchRates('/gone'), { code: 1, stdout: '', stderr });
  const page = await fetchRates('/page');
  t.match(page, { code: 1, stdout: '', stderr });
  t.match(page.stderr, /what http:\/\/127\.0\.0\.1:\d+\/page sends is no file of rates/);
  t.match(await fetchRates('/cut'), { code: 3, stderr: /\(invalid_archive\)/ });
  const { rows } = await pool.query('select count(*) from fx_rate');
  t.strictSame(rows, [{ count: '0' }]);
});

t.test('files and a download do not go together, and one of them is needed', async (t) => {
  const env = { DATABASE_URL: 'postgres://127.0.0.1:1/none' };
  const load = (...args: string[]) => prices(t, env, 'load', 'ecb', ...args);
  t.match(await load('--fetch', 'a.zip'), { code: 2, stderr: /not both/ });
  t.match(await load(), { code: 2, stderr: /name a file, or take --fetch/ });
  t.match(await prices(t, { ...env, ECB_URL: 'http://example.com/a' }, 'load', 'ecb', '--fetch'), {
    code: 2,
    stderr: /^commodity-prices: ECB_URL: /,
  });
});
