import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t from 'tap';
import { json, type Responder, refused, SOON, scriptedServer } from '../clients/scripted-server.ts';
import { fill } from '../support/database/bulk.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { addressOf } from '../support/http/address.ts';
import { type Service, serviceOn } from '../support/http/service.ts';
import { until } from '../support/http/sockets.ts';
import { makeFolder } from '../support/run/folders.ts';

const PRICES = 150;
const POINTS = 2;

/** Writes the program of a page of the documentation into a folder. */
async function programOf(page: string, folder: string): Promise<string> {
  const text = await readFile(new URL(`../../docs/${page}`, import.meta.url), 'utf8');
  const [, program = ''] = /```python\n(.*?)```/s.exec(text) ?? [];
  const file = join(folder, 'reader.py');
  await writeFile(file, program);
  return file;
}

/** A proxy before a service, with the status of each answer; `before` runs before each request. */
async function doorOf(
  test: Pick<typeof t, 'teardown'>,
  { app }: Service,
  before: (number: number) => Promise<unknown> = async () => {},
): Promise<{ url: string; statuses: number[] }> {
  const target = await addressOf(app);
  const statuses: number[] = [];
  let requests = 0;
  const door = createServer(async (asked, reply) => {
    const { url = '', method = '', headers } = asked;
    requests += 1;
    await before(requests);
    const sent = request(new URL(url, target), { method, headers }, (answer) => {
      statuses.push(answer.statusCode ?? 0);
      reply.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(reply);
    });
    sent.on('error', () => reply.destroy());
    asked.pipe(sent);
    reply.on('close', () => sent.destroy());
  }).listen(0, '127.0.0.1');
  await once(door, 'listening');
  test.teardown(() => {
    door.closeAllConnections();
    door.close();
  });
  return { url: `http://127.0.0.1:${(door.address() as AddressInfo).port}`, statuses };
}

interface Reading {
  readonly child: ChildProcess;
  /** Its output at exit. */
  readonly ended: Promise<{ code: number | null; stdout: string; stderr: string }>;
}

/** Starts a documented program as its page says. */
async function startReader(
  test: Pick<typeof t, 'teardown'>,
  page: string,
  folder: string,
  env: Record<string, string>,
): Promise<Reading> {
  const child = spawn('python3', [await programOf(page, folder)], {
    cwd: folder,
    env: { ...process.env, COMMODITY_PRICES_LAG: '0.1', ...env },
  });
  test.teardown(() => child.kill('SIGKILL'));
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text;
    });
  }
  return { child, ended: once(child, 'close').then(([code]) => ({ code, ...said })) };
}

async function filled(test: Pick<typeof t, 'teardown'>): Promise<TestDatabase> {
  const database = await testDatabase(test);
  await fill(database, { prices: PRICES, points: POINTS });
  return database;
}

const renewEpoch = ({ pool }: TestDatabase, epoch: string) =>
  pool.query('update service set epoch = $1', [epoch]);

/** Runs a statement on the database of the documented reader of the feed. */
function query(folder: string, sql: string): unknown {
  const file = new DatabaseSync(join(folder, 'prices.db'), { timeout: 10_000 });
  try {
    return Object.values(file.prepare(sql).get() ?? {})[0];
  } finally {
    file.close();
  }
}

const POINTS_READ = 'select count(*) from point';

/** Waits until the reader has read all of an epoch, and kills it. */
async function readAll(folder: string, epoch: string, { child, ended }: Reading): Promise<void> {
  await until(`the reader has read epoch ${epoch}`, () => {
    if (child.exitCode !== null) throw new Error(`the reader ended: ${child.exitCode}`);
    try {
      const after = String(query(folder, 'select after from position'));
      return after.startsWith(epoch) && query(folder, POINTS_READ) === PRICES * POINTS;
    } catch {
      return false; // The reader has not made its tables yet.
    }
  });
  child.kill('SIGKILL');
  await ended;
}

t.test('the documented reader of the feed', async (t) => {
  const database = await filled(t);
  const service = await serviceOn(t, database);
  const { path: folder, remove } = await makeFolder();
  t.teardown(remove);
  const door = await doorOf(t, service);
  const env = { COMMODITY_PRICES_URL: door.url, COMMODITY_PRICES_KEY: service.key };
  const start = (more = {}) => startReader(t, 'changes.md', folder, { ...env, ...more });
  const setPosition = (text: string) =>
    query(folder, `update position set after = ${text} returning 1`);

  const { rows } = await database.pool.query('select epoch from service');
  await readAll(folder, rows[0].epoch, await start());
  for (const [why, lose] of [
    ['another epoch', () => renewEpoch(database, 'renewed')],
    ['a position beyond the newest change', async () => setPosition("after || '0'")],
  ] as const) {
    await t.test(`starts again when its position is unknown: ${why}`, async (t) => {
      query(folder, "insert into point values ('LOST', '2026-01-01', '1', '1', '1') returning 1");
      await lose();
      await readAll(folder, 'renewed', await start());
      t.equal(query(folder, "select count(*) from point where code = 'LOST'"), 0);
    });
  }
  const known = query(folder, 'select after from position');

  await t.test('keeps its position while another instance may know it', async (t) => {
    setPosition("after || '0'");
    door.statuses.length = 0;
    const { child, ended } = await start({ COMMODITY_PRICES_LAG: '60' });
    await until('its position is rejected', () => door.statuses.includes(400));
    t.equal(query(folder, POINTS_READ), PRICES * POINTS);
    child.kill('SIGKILL');
    await ended;
  });

  await t.test('stops at every other rejection and keeps what it holds', async (t) => {
    setPosition("'garbage'");
    const broken = await (await start()).ended;
    t.equal(broken.code, 1);
    const errors = [{ pointer: '?after', code: 'invalid_format' }];
    t.match(JSON.parse(broken.stderr), { code: 'validation_failed', errors });
    setPosition(`'${known}'`);
    const unknown = await (await start({ COMMODITY_PRICES_KEY: 'x' })).ended;
    t.match(JSON.parse(unknown.stderr), { code: 'invalid_api_key' });
    t.equal(query(folder, POINTS_READ), PRICES * POINTS);
  });
});

t.test('the documented walk over pages', async (t) => {
  const database = await filled(t);
  const folder = await makeFolder();
  t.teardown(folder.remove);
  const walk = async (service: Service, before?: (number: number) => Promise<unknown>) => {
    const { url, statuses } = await doorOf(t, service, before);
    const env = { COMMODITY_PRICES_URL: url, COMMODITY_PRICES_KEY: service.key };
    const { ended } = await startReader(t, 'formats.md', folder.path, env);
    return { ...(await ended), statuses };
  };
  const service = await serviceOn(t, database);

  await t.test('starts again when its cursor is invalid', async (t) => {
    const { stdout, stderr, statuses } = await walk(service, async (number) => {
      if (number === 2) await renewEpoch(database, 'renewed');
    });
    t.equal(stdout, `${PRICES} records, the last is BULK-00${PRICES}\n`, stderr);
    t.same(statuses, [200, 400, 200, 200]);
  });

  await t.test('stops at every other rejection', async (t) => {
    const strict = await serviceOn(t, database, { RECORDS_MAX: 99 });
    const { code, stderr } = await walk(strict);
    t.equal(code, 1);
    t.match(JSON.parse(stderr), {
      code: 'validation_failed',
      errors: [{ pointer: '/options/limit', code: 'out_of_range' }],
    });
  });
});

/** Answers with the HTML of a proxy, and asks to wait for a second. */
const gateway = json('<html>', { 'content-type': 'text/html', 'retry-after': '1' }, 502);

/** Failures that pass: a status of a proxy, a page with another status, and a refusal. */
const PASSING = [gateway, json('<html>', SOON, 404), refused(503, 'overloaded', SOON)];

t.test('the documented programs go on after failures that pass, as Retry-After says', async (t) => {
  const folder = await makeFolder();
  t.teardown(folder.remove);
  const timesOf = (answers: readonly Responder[]) => {
    const times: number[] = [];
    const timed = answers.map(
      (answer): Responder =>
        (reply, request) => {
          times.push(performance.now());
          answer(reply, request);
        },
    );
    return { times, timed };
  };
  const env = { COMMODITY_PRICES_KEY: 'a-key' };
  for (const [page, last, code, output] of [
    [
      'formats.md',
      json({ $metadata: { nextCursor: null }, data: [{ code: 'A' }] }),
      0,
      /^1 records, the last is A\n$/,
    ],
    ['changes.md', refused(401, 'invalid_api_key'), 1, /"code": "invalid_api_key"/],
  ] as const) {
    const { times, timed } = timesOf([...PASSING, last]);
    const { url } = await scriptedServer(t, timed);
    const reader = await startReader(t, page, folder.path, { ...env, COMMODITY_PRICES_URL: url });
    const ended = await reader.ended;
    t.equal(ended.code, code, `${page}: ${ended.stderr}`);
    t.match(`${ended.stdout}${ended.stderr}`, output, page);
    t.equal(times.length, PASSING.length + 1, page);
    const [first = 0, second = 0] = times;
    t.ok(second - first >= 1_000, `${page}: it waits for a second`);
  }
});

t.test('the documented walk over pages ends when a failure does not pass', async (t) => {
  const folder = await makeFolder();
  t.teardown(folder.remove);
  const { url, requests } = await scriptedServer(t, [json('<html>', SOON, 502)]);
  const env = { COMMODITY_PRICES_URL: url, COMMODITY_PRICES_KEY: 'a-key' };
  const { code, stderr } = await (await startReader(t, 'formats.md', folder.path, env)).ended;
  t.equal(code, 1);
  t.match(stderr, /answered 502/);
  t.equal(requests(), 6);
});

t.test('no documented program takes the key along to the target of a redirect', async (t) => {
  const folder = await makeFolder();
  t.teardown(folder.remove);
  for (const page of ['changes.md', 'formats.md']) {
    const target = await scriptedServer(t, [json({ code: 'a_code' }, {}, 400)]);
    const moved = await scriptedServer(t, [json('', { location: `${target.url}/v3` }, 302)]);
    const env = { COMMODITY_PRICES_URL: moved.url, COMMODITY_PRICES_KEY: 'a-key' };
    const { code, stderr } = await (await startReader(t, page, folder.path, env)).ended;
    t.equal(code, 1, page);
    t.match(stderr, /redirects to http:\S+: use the final address\n$/, page);
    t.equal(target.requests(), 0, page);
  }
});
