import t from 'tap';
import { type Client, openClient } from '../../src/db/client.ts';
import { contentHash } from '../../src/db/content-hash.ts';
import { migrateUp } from '../../src/db/migrate/migrate.ts';
import { seed } from '../../src/db/seed/seed.ts';
import { ownCluster } from '../support/database/cluster.ts';
import {
  type SmallDisk,
  smallFiles,
  smallLog,
  smallTmpfs,
} from '../support/database/small-disk.ts';
import { prices } from '../support/process/programs.ts';
import { recordFigures } from '../support/run/faults.ts';
import { findings } from '../verify/support.ts';
import { describePrices, fileOf, loadFile, loadText, points } from './support/loading.ts';

type Test = Pick<typeof t, 'teardown' | 'rejects' | 'equal' | 'match' | 'strictSame'>;

const clientOn = (url: string): Client =>
  openClient({
    url,
    connectionsMax: 2,
    acquireTimeoutMs: 20_000,
    statementTimeoutMs: 0,
    readOnly: false,
    applicationName: 'disk full test',
  });

const CODES = ['A', 'B', 'C', 'D', 'E'];
const day = (index: number): string =>
  new Date(Date.UTC(1900, 0, index + 1)).toISOString().slice(0, 10);

/** Points of five prices. */
const valuesOf = (rows: number): string => {
  const days = Math.ceil(rows / CODES.length);
  const lines = Array.from({ length: rows }, (_, index) => {
    const code = CODES[Math.floor(index / days)];
    return `${code},${day(index % days)},,${1 + (index % 7)}.25,,`;
  });
  return points(lines.join('\n'));
};

/** Loads until there is room, and checks after each attempt that nothing was lost. */
async function fillDisk(t: Test, disk: SmallDisk, rows: number, rooms: readonly number[]) {
  const client = clientOn(disk.url);
  await migrateUp(client.db);
  await seed(client, { reference: true });
  await describePrices(client, ...CODES);
  await loadText(t, client, 'csv', points('A,1890-01-01,,1,,', 'B,1890-01-01,,2,,'));
  const { hash } = await contentHash(client);
  const file = await fileOf(t, valuesOf(rows));
  for (const room of rooms) {
    await disk.leave(room);
    await t.rejects(
      loadFile(client, 'csv', file),
      { message: /could not (extend|write)/ },
      `with ${room} MB`,
    );
    t.equal((await contentHash(client)).hash, hash, 'nothing is lost, and reads continue');
  }
  await disk.leave(1);
  const { code, stderr } = await prices(t, { DATABASE_URL: disk.url }, 'load', 'csv', file);
  t.equal(code, 1);
  t.match(stderr, /^commodity-prices: .*could not (extend|write) file/m);
  t.equal((await contentHash(client)).hash, hash);
  await client.close();
  const later = clientOn(await disk.makeRoom());
  t.equal((await contentHash(later)).hash, hash, 'nothing of it is there');
  const report = await loadFile(later, 'csv', file);
  t.match(report, { status: 'applied', counts: { inserted: rows } }, 'there is room, it goes in');
  t.strictSame(await findings(later), []);
  await later.close();
  recordFigures('F13', { 'degrees of fullness': rooms.length + 1, 'values of the load': rows });
  return stderr;
}

t.test('a load on a full disk fails whole, says so, and succeeds once there is room', async (t) => {
  const tmpfs = await smallTmpfs();
  if (tmpfs === null) t.comment('nothing can be mounted here: files that may not grow stand in');
  const disk = tmpfs ?? (await smallFiles());
  t.teardown(() => disk.close());
  const stderr = await fillDisk(t, disk, tmpfs ? 100_000 : 160_000, tmpfs ? [0, 1, 4, 8] : [0]);
  if (tmpfs) t.match(stderr, /the disk of the database is full .*No space left on device/);
});

t.test('a load whose log finds no room is not there; it goes in once there is', async (t) => {
  // Recycled WAL files would be free space.
  const cluster = await ownCluster(t, { wal_recycle: 'off' });
  const log = await smallLog(t, cluster);
  const rows = 100_000;
  const file = await fileOf(t, valuesOf(rows));
  const before = await cluster.using(async ({ client }) => {
    await describePrices(client, ...CODES);
    return contentHash(client);
  });
  await cluster.query('checkpoint');
  const how = await log.fill();
  if (how === 'SIGKILL') t.comment('nothing can be mounted here: the server is killed instead');
  const load = ['load', 'csv', file, '--accept-jumps'];
  const { code, stderr } = await prices(t, { DATABASE_URL: cluster.url }, ...load);
  t.equal(code, 1);
  t.match(stderr, /^commodity-prices: .+/m);
  if (how === 'ENOSPC') t.match(stderr, /^writing /m, 'the load ended where the log is written');
  await log.makeRoom();
  await cluster.using(async ({ client }) => {
    t.equal((await contentHash(client)).hash, before.hash, 'nothing of it is there');
    const report = await loadFile(client, 'csv', file);
    t.match(report, { status: 'applied', counts: { inserted: rows } }, 'there is room, it goes in');
    t.strictSame(await findings(client), []);
  });
  recordFigures('F13', { 'writing the log failed with': how });
});
