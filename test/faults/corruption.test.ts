import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { ownCluster } from '../support/cluster.ts';
import { fault } from '../support/faults.ts';
import { type Ask, codeOf, sendAll } from '../support/load.ts';
import { served } from '../support/served.ts';
import { until } from '../support/sockets.ts';
import { SPECIFIED } from '../support/specification.ts';

const PAGE = 8_192;

const ASKS: readonly Ask[] = SPECIFIED.map(({ slug }) => ({
  path: `/v3/prices/${slug}`,
  body: JSON.stringify({ options: { includeSeries: true } }),
}));

/** Changes a bit of a page in the midst of a file, whatever it means there. */
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
  'a byte changed on the disk, under data checksums',
  'never a wrong price: 500 or 503, and every answer that comes is what it was',
  async (t) => {
    const cluster = await ownCluster(t);
    const ask = async (text: string): Promise<string> => {
      const { rows } = await cluster.ask(text);
      return String(Object.values(rows[0] ?? {})[0]);
    };
    t.equal(await ask('show data_checksums'), 'on');
    const start = () => cluster.using((database) => served(t, database, { PRICE_BOOK_BYTES: '0' }));
    const before = await sendAll(t, await start(), ASKS, 2);
    t.ok(before.every(({ status }) => status === 200));
    const { rows } = await cluster.ask(`select pg_relation_filepath(oid) as path from pg_class
      where oid = 'series'::regclass
        or oid in (select indexrelid from pg_index where indrelid = 'series'::regclass)`);
    await cluster.stop();
    // The table and what is read instead of it.
    for (const { path } of rows) await spoil(join(cluster.folder, path));
    await cluster.restart('fast');
    const service = await start();
    const after = await sendAll(t, service, ASKS, 2);
    const wrong = after.filter(
      ({ status, text }, at) => status === 200 && text !== before[at]?.text,
    );
    t.equal(wrong.length, 0, 'no answer differs');
    const failed = after.filter(({ status }) => status !== 200);
    t.ok(failed.length > 0, 'the page was needed');
    for (const each of failed) {
      // An answer that had begun breaks off: it is no document.
      if (each.status !== 0) t.match(codeOf(each), /^(internal_error|database_unavailable)$/);
    }
    await until('the log tells it', () => /invalid page|checksum/.test(service.running.stderr()));
    return {
      answers: after.length,
      'as they were': after.length - failed.length,
      refused: failed.length,
      wrong: wrong.length,
    };
  },
);
