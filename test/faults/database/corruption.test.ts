import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ownCluster } from '../../support/database/cluster.ts';
import { inRevision } from '../../support/database/minimal-data.ts';
import { counted, WITH_METRICS, watchedBy } from '../../support/http/metrics.ts';
import { startServiceProcess } from '../../support/http/service-process.ts';
import { until } from '../../support/http/sockets.ts';
import { SPECIFIED } from '../../support/prices/specification.ts';
import { within } from '../../support/process/figures.ts';
import {
  codeOf,
  type HttpAnswer,
  type HttpRequest,
  send,
  sendAll,
  unacceptable,
} from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { failDisk } from './failing-disk.ts';

const PAGE = 8_192;

const ASKS: readonly HttpRequest[] = SPECIFIED.map(({ slug }) => ({
  path: `/v3/prices/${slug}`,
  body: JSON.stringify({ options: { includeSeries: true } }),
}));

/** Settings of a service with metrics whose every answer needs the database. */
const ENV = { PRICE_BOOK_BYTES: '0', ...WITH_METRICS };

/** Answers with status 200 that differ from the original ones. */
const wrongOf = (answers: readonly HttpAnswer[], before: readonly HttpAnswer[]): HttpAnswer[] =>
  answers.filter(({ status, text }, at) => status === 200 && text !== before[at]?.text);

/** Flips a bit in the middle of a file. */
async function spoil(path: string): Promise<void> {
  const file = await open(path, 'r+');
  const { size } = await file.stat();
  const at = Math.floor(size / PAGE / 2) * PAGE + PAGE - 100;
  const byte = Buffer.alloc(1);
  await file.read(byte, 0, 1, at);
  await file.write(Buffer.from([(byte[0] ?? 0) ^ 0x10]), 0, 1, at);
  await file.close();
}

fault(
  'F14',
  'a byte changed on the disk, with data checksums',
  'never a wrong price: 500 or 503, each counted by a metric with an alert, and every ' +
    'successful answer is unchanged',
  async (t) => {
    const cluster = await ownCluster(t);
    const ask = async (text: string): Promise<string> => {
      const { rows } = await cluster.query(text);
      return String(Object.values(rows[0] ?? {})[0]);
    };
    t.equal(await ask('show data_checksums'), 'on');
    const start = () => cluster.using((database) => startServiceProcess(t, database, ENV));
    const before = await sendAll(t, await start(), ASKS, 2);
    t.ok(before.every(({ status }) => status === 200));
    const { rows } = await cluster.query(`select pg_relation_filepath(oid) as path from pg_class
      where oid = 'series'::regclass
        or oid in (select indexrelid from pg_index where indrelid = 'series'::regclass)`);
    await cluster.stop();
    // The table and its indexes.
    for (const { path } of rows) await spoil(join(cluster.folder, path));
    await cluster.restart('fast');
    const service = await start();
    const after = await sendAll(t, service, ASKS, 2);
    const wrong = wrongOf(after, before);
    t.equal(wrong.length, 0, 'no answer differs');
    const failed = after.filter(({ status }) => status !== 200);
    t.ok(failed.length > 0, 'the page was needed');
    for (const each of failed) {
      // A started answer is cut off: it is no valid document.
      if (each.status !== 0) t.match(codeOf(each), /^(internal_error|database_unavailable)$/);
    }
    await until('the error is in the log', () =>
      /invalid page|checksum/.test(service.running.stderr()),
    );
    const ours = failed.filter(({ status }) => status !== 503).length;
    const watched = await watchedBy('PricesInternalError');
    await until('each is counted', async () => (await counted(service, watched)) >= ours);
    const alarms = await counted(service, watched);
    t.equal(alarms, ours, 'the alert counts what failed, and nothing else');
    return {
      answers: after.length,
      unchanged: after.length - failed.length,
      rejected: failed.length,
      wrong: within(wrong.length, 0, 'answers'),
      'counted for PricesInternalError': alarms,
    };
  },
);

fault(
  'F14b',
  'a disk that fails each fsync with EIO, until it is repaired',
  'never a wrong price: only 503 with Retry-After while PostgreSQL is down, counted by a ' +
    'metric with an alert; then every answer is unchanged',
  async (t) => {
    const cluster = await ownCluster(t, { fsync: 'on' });
    const service = await cluster.using((database) => startServiceProcess(t, database, ENV));
    // A fresh commit forces a sync.
    await cluster.using(({ pool }) =>
      inRevision(pool, `update price set name = name || ' anew' where id % 3 = 0`),
    );
    const anew = async (): Promise<boolean> =>
      (await sendAll(t, service, ASKS)).some(({ text }) => text.includes(' anew"'));
    await until('the commit is in the answers', anew);
    const before = await sendAll(t, service, ASKS, 2);
    t.ok(before.every(({ status }) => status === 200));
    const how = await failDisk(t, cluster);
    if (how === 'EIO')
      await t.rejects(cluster.query('checkpoint'), 'nothing is brought to the disk');
    const watched = await watchedBy('PricesDatabaseAway');
    const during: HttpAnswer[] = [];
    let wrong = 0;
    const askAll = async (): Promise<readonly HttpAnswer[]> => {
      const answers = await sendAll(t, service, ASKS, 2);
      wrong += wrongOf(answers, before).length;
      return answers;
    };
    await until('the alert fires', async () => {
      during.push(...(await askAll()));
      return (await counted(service, watched)) === 1;
    });
    during.push(...(await askAll()));
    t.same(unacceptable(during), []);
    t.equal((await send(false, service, { path: '/ready' })).status, 503);
    if (how === 'EIO') {
      const log = await readFile(cluster.log, 'utf8');
      t.match(log, /PANIC: {2}could not (fsync|fdatasync) file/);
    }
    // The remaining processes cannot write their shutdown either.
    await cluster.restart('immediate');
    const isGood = ({ status }: HttpAnswer): boolean => status === 200;
    await until('all are answered', async () => (await askAll()).every(isGood));
    t.equal(await counted(service, watched), 0, 'the alert ends');
    t.equal(wrong, 0, 'no answer differs');
    return {
      how,
      'answers meanwhile': during.length,
      '503': during.filter(({ status }) => status === 503).length,
      wrong: within(wrong, 0, 'answers'),
      'counted for PricesDatabaseAway': 1,
    };
  },
);
