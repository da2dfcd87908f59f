import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { OPERATIONS } from '../../src/contract/schemas/changes.ts';
import { testDatabase } from '../support/database/database.ts';
import { writeMinimalData } from '../support/database/minimal-data.ts';
import { addressOf } from '../support/http/address.ts';
import { serviceOn } from '../support/http/service.ts';
import { changesOf } from '../support/prices/feed-oracle.ts';
import { page, readAll } from '../support/prices/feed-pages.ts';
import { publisherOn } from '../support/prices/random-commits.ts';
import { makeFolder } from '../support/run/folders.ts';
import { freePort, senderOn, subscribe } from './support.ts';

const PROGRAM = fileURLToPath(new URL('receiver-process.ts', import.meta.url));

/** Webhooks of the one receiver, commits, and kills of its process. */
const WEBHOOKS = 16;
const COMMITS = 30;
const KILLS = 4;

t.test(
  'a receiver that fails 1,000 times and is killed has exactly the rows of the feed',
  async (t) => {
    const database = await testDatabase(t);
    await writeMinimalData(database.pool);
    const service = await serviceOn(t, database);
    const address = await addressOf(service.app);
    const { next: begin } = await page(service, { after: 'latest' });
    const folder = await makeFolder();
    t.teardown(folder.remove);
    const [changes, failures] = [join(folder.path, 'changes'), join(folder.path, 'failures')];
    await Promise.all([writeFile(changes, ''), writeFile(failures, '')]);
    const port = await freePort();
    const secrets: string[] = [];
    for (let each = 0; each < WEBHOOKS; each += 1) {
      const url = `http://127.0.0.1:${port}/${each}`;
      secrets.push((await subscribe(database, url, { operations: OPERATIONS })).secret);
    }
    const start = async (): Promise<ChildProcess> => {
      const child = spawn(
        process.execPath,
        [PROGRAM, changes, failures, String(port), secrets.join()],
        { env: { ...process.env, SERVICE_KEY: service.key }, stdio: ['ignore', 'pipe', 'inherit'] },
      );
      t.teardown(() => child.kill('SIGKILL'));
      await once(child.stdout ?? child, 'data');
      return child;
    };
    let child = await start();
    const publisher = await publisherOn(database.pool, 7);
    for (let each = 0; each < COMMITS; each += 1) await publisher.transact();
    const bell = senderOn(t, database, { publicUrl: address });
    for (let turn = 0, kills = 0; ; turn += 1) {
      const settling = bell.settle();
      if (kills < KILLS && turn % 2 === 0) {
        kills += 1;
        child.kill('SIGKILL');
        await settling;
        child = await start();
      }
      await settling;
      if (!(await bell.advance())) break;
    }
    const failed = readFileSync(failures, 'utf8').length;
    t.ok(failed >= 1_000, `${failed} failures`);
    const { rows } = await database.pool.query(
      'select outcome, count(*)::int as messages from webhook_message group by 1',
    );
    t.match(rows, [{ outcome: 'delivered' }]);
    const feed = await readAll(service, 1_000, begin);
    t.ok(feed.length > 50);
    const found = changesOf(readFileSync(changes, 'utf8'));
    t.equal(new Set(found.map(({ seq }) => seq)).size, found.length, 'none twice');
    const byPosition = (one: { seq: string }, other: { seq: string }): number =>
      Number(one.seq.split('.')[1]) - Number(other.seq.split('.')[1]);
    t.same(found.sort(byPosition), feed);
  },
);
