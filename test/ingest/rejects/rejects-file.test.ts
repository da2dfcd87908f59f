import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import t from 'tap';
import { randomOf } from '../../conversion/support.ts';
import {
  CORRECTING,
  contentOf,
  describePrices,
  fileOf,
  loadFile,
  loadingDatabase,
  loadText,
  points,
  seriesOf,
} from '../support/loading.ts';

type LoadingDatabase = Awaited<ReturnType<typeof loadingDatabase>>;
type LoadingOptions = Parameters<typeof loadFile>[3];

/** Loads a CSV file with a rejects file. */
async function setAside(
  test: Parameters<typeof fileOf>[0],
  { client }: LoadingDatabase,
  content: string | Buffer,
  options: LoadingOptions = {},
) {
  const file = await fileOf(test, content);
  const path = join(dirname(file), 'rejects.csv');
  const rejects = { file: path, overwrite: false };
  const report = await loadFile(client, 'csv', file, { rejects, ...options });
  const read = async (name: string) => (existsSync(name) ? await readFile(name, 'utf8') : null);
  return { report, path, file, text: await read(path), reasons: await read(reasonsOf(path)) };
}

/** The reasons file of a rejects file. */
const reasonsOf = (path: string): string => `${path}.reasons.csv`;

const BROKEN = points(
  'A,2026-01-01,,1,,',
  'A,2026-01-08,,"1,5",,2026-01-08T16:00:00Z',
  'Z,2026-01-08,1,2,3,',
  'A,2026-01-15,,3,,',
  'A,2026-01-15,,4,,2026-01-15T17:00:00+01:00',
  'A,2026-01-22',
  'A,2026-13-01,,5,,',
);

t.test('rejected rows go to a file as they stand, with the reasons beside it', async (t) => {
  const database = await loadingDatabase(t);
  await describePrices(database.client, 'A');
  const { report, path, file, text, reasons } = await setAside(t, database, BROKEN);
  t.match(report, { status: 'applied', rejects: path, errorsTotal: 5 });
  t.match(report.counts, { rows: 7, inserted: 2, unchanged: 0, rejected: 5 });
  t.match(await seriesOf(database.pool, 'A'), [
    ['2026-01-01', null, '1'],
    ['2026-01-15', null, '3'],
  ]);
  const lines = BROKEN.split('\n');
  t.equal(text, [0, 2, 3, 5, 6, 7].map((index) => `${lines[index]}\n`).join(''));
  const [header, ...rows] = (reasons ?? '').trim().split('\n');
  t.equal(header, 'file,line,column,value,code,reason');
  const numbered = rows.map((row) => row.replace(file, 'FILE'));
  t.strictSame(numbered, [
    'FILE,7,,,wrong_column_count,"The row has 2 fields, the header 6"',
    'FILE,3,mid,"1,5",invalid_number,"The value has a comma: write a decimal as 1234.5, ' +
      'and a thousand without a separator, as 1000"',
    'FILE,8,date,2026-13-01,invalid_date,"The date is not a real day, written YYYY-MM-DD"',
    'FILE,4,code,Z,unknown_code,"No price has this code; did you mean ""A""?"',
    'FILE,6,date,2026-01-15,duplicate,A already has a value for 2026-01-15 in line 5',
  ]);
  const { rows: ledger } = await database.pool.query(
    'select status, rows, inserted, rejected from load_batch where id = $1',
    [report.batch],
  );
  t.strictSame(ledger, [{ status: 'applied', rows: '7', inserted: '2', rejected: '5' }]);
  const left = (await readdir(dirname(path))).sort();
  t.strictSame(left, ['file', 'rejects.csv', 'rejects.csv.reasons.csv'], 'nothing else is left');
});

t.test('a row is copied with all its lines and its bytes, whatever they are', async (t) => {
  const database = await loadingDatabase(t);
  await describePrices(database.client, 'A');
  const rows = [
    '\n"code",date,mid,"name"\r\n',
    'A,2026-01-01,1,\r\n',
    'A,2026-01-02,x,"one\r\nA,2026-01-03,y,\n""two"" "\r\n',
    'A,2026-01-04,2,\n',
    'A,2026-01-05,z,\xff\n',
    'A,2026-01-06,3,\n',
    'A,2026-01-07,"v",',
  ];
  const { text } = await setAside(t, database, Buffer.from(rows.join(''), 'latin1'));
  const kept = [0, 2, 4, 6].map((index) => rows[index]).join('');
  t.equal(text, Buffer.from(kept, 'latin1').toString());
});

t.test('mended rejects can be loaded as they are, and the file itself once more', async (t) => {
  const database = await loadingDatabase(t);
  const { client, pool } = database;
  await describePrices(client, 'A');
  const { text, file } = await setAside(t, database, BROKEN);
  const mended = (text ?? '')
    .replace('"1,5",,2026-01-08T', '1.5,,2026-01-08T')
    .replace('A,2026-01-22', 'A,2026-01-22,,4.5,,')
    .replace('A,2026-13-01', 'A,2026-01-29')
    .replace(/^A,2026-01-15.*\n/m, '');
  const unknown = await loadText(t, client, 'csv', mended);
  t.match(unknown, { status: 'refused', errors: [{ code: 'unknown_code', value: 'Z' }] });
  await describePrices(client, 'Z');
  const report = await loadText(t, client, 'csv', mended);
  t.match(report, { status: 'applied', counts: { rows: 4, inserted: 4 } });
  t.equal((await seriesOf(pool, 'A')).length, 5);
  const rejects = { file: `${file}.again`, overwrite: false };
  const again = await loadFile(client, 'csv', file, { rejects });
  t.match(again, { status: 'unchanged', counts: { unchanged: 3, rejected: 4 } });
  await loadText(t, client, 'csv', 'code,date,mid\nA,2026-02-01,1\n');
  const whole = await loadText(t, client, 'csv', 'code,date,mid\nA,2026-02-01,1\n');
  t.match(whole, { status: 'already-loaded' }, 'a file without rejects is loaded once');
});

t.test('the file of rejects is whole or not there, and replaces none unasked', async (t) => {
  const database = await loadingDatabase(t);
  const { client, pool } = database;
  await describePrices(client, 'A');
  const state = await contentOf(pool);
  const taken = await fileOf(t, 'mine');
  const rejects = { file: taken, overwrite: false };
  await t.rejects(loadText(t, client, 'csv', BROKEN, { rejects }), { message: /exists already/ });
  const nowhere = { file: join(taken, 'rejects.csv'), overwrite: false };
  await t.rejects(loadText(t, client, 'csv', BROKEN, { rejects: nowhere }), { code: 'ENOTDIR' });
  const late = { file: `${taken}.late`, overwrite: false };
  const onPreview = () => writeFile(late.file, 'theirs');
  await t.rejects(loadText(t, client, 'csv', BROKEN, { rejects: late, onPreview }), {
    code: 'EEXIST',
  });
  t.equal(await readFile(late.file, 'utf8'), 'theirs');
  t.equal(await readFile(taken, 'utf8'), 'mine');
  t.equal(await contentOf(pool), state, 'a load without its file of rejects changes nothing');
  const blocked = await loadText(t, client, 'csv', `${BROKEN}"open`, {
    rejects: { ...rejects, overwrite: true },
  });
  t.match(blocked, { status: 'refused', rejects: null });
  t.equal(await readFile(taken, 'utf8'), 'mine', 'a file that makes no sense is refused whole');
  const report = await loadText(t, client, 'csv', BROKEN, {
    rejects: { ...rejects, overwrite: true },
  });
  t.match(report, { status: 'applied', rejects: taken });
  t.match(await readFile(taken, 'utf8'), /^code,date,/);
  const left = (await readdir(dirname(taken))).sort();
  t.strictSame(left, ['file', 'file.late', 'file.reasons.csv']);
});

t.test('a load without rejects leaves no file, and a dry run none either', async (t) => {
  const database = await loadingDatabase(t);
  await describePrices(database.client, 'A');
  const dry = await setAside(t, database, BROKEN, { dryRun: true });
  t.match(dry.report, { status: 'previewed', batch: null, rejects: null, errorsTotal: 5 });
  t.match(dry.report.preview, { newValues: { total: 1, values: 2 }, rejected: 5 });
  t.equal(dry.text, null);
  const clean = await setAside(t, database, points('A,2026-01-01,,1,,'));
  t.match(clean.report, { status: 'applied', rejects: null });
  t.equal(clean.text, null);
});

t.test('corrections without permission are set aside, and what is there stays', async (t) => {
  const database = await loadingDatabase(t);
  const { client, pool } = database;
  await describePrices(client, 'A');
  await loadText(t, client, 'csv', points('A,2026-01-01,,1,,', 'A,2026-01-02,,2,,'));
  const changed = points('A,2026-01-01,,1,,', 'A,2026-01-02,,2.5,,', 'A,2026-01-03,,3,,');
  const { report, text, reasons } = await setAside(t, database, changed);
  t.match(report.counts, { rows: 3, inserted: 1, unchanged: 1, corrected: 0, rejected: 1 });
  t.match(text, /\nA,2026-01-02,,2\.5,,\n$/);
  t.match(reasons, /,3,mid,2\.5,correction_not_allowed,/);
  t.match(
    (await seriesOf(pool, 'A')).map(([, , mid]) => mid),
    ['1', '2', '3'],
  );
});

t.test('a price that cannot be described takes its rows with it, and no other', async (t) => {
  const database = await loadingDatabase(t);
  const { client, pool } = database;
  await describePrices(client, 'A', 'B');
  const header = 'code,date,mid,market,name,product,priceCategory,priceType,frequency,currency';
  const fine = 'aluminium,N,Bauxite,Spot,Price,Weekly,USD,t';
  const content = [
    `${header},unitOfMeasure`,
    `N,2026-01-01,1,${fine}`,
    `M,2026-01-01,1,${fine.replace('Bauxite', 'Bauxit')}`,
    'M,2026-01-08,2,,,,,,,,',
    `A,2026-01-01,3,${fine.replace(',N,', ',Other,')}`,
    'A,2026-01-08,4,,,,,,,,',
    `N,2026-01-08,5,${fine.replace(',N,', ',Other,')}`,
    'B,2026-01-08,6,,,,,,,,',
    '',
  ].join('\n');
  const { report, text, reasons } = await setAside(t, database, content);
  t.match(report.counts, { rows: 7, inserted: 3, rejected: 4, pricesAdded: 1, pricesChanged: 0 });
  for (const [code, dates] of Object.entries({
    N: ['2026-01-01'],
    A: ['2026-01-08'],
    B: ['2026-01-08'],
    M: [],
  })) {
    t.strictSame(
      (await seriesOf(pool, code)).map(([date]) => date),
      dates,
      code,
    );
  }
  t.match(reasons, /,unknown_product,/);
  t.match(
    reasons,
    /,unknown_code,"No price has this code, and its description in line 3 was rejected"/,
  );
  const mended = (text ?? '').replaceAll('Bauxit,', 'Bauxite,').replaceAll(',Other,', ',N,');
  const again = await loadText(t, client, 'csv', mended, CORRECTING);
  t.match(again, { status: 'applied', counts: { inserted: 4, pricesAdded: 1, pricesChanged: 1 } });
});

t.test('after jumps were set aside, none is left', async (t) => {
  const database = await loadingDatabase(t);
  const { client, pool } = database;
  const strict = { acceptJumps: false, ...CORRECTING };
  await describePrices(client, 'A');
  const spike = points('A,2026-01-01,,100,,', 'A,2026-01-02,,9900,,', 'A,2026-01-03,,102,,');
  const { report, text, reasons } = await setAside(t, database, spike, strict);
  t.match(report.counts, { inserted: 2, rejected: 1 });
  t.match(text, /\nA,2026-01-02,,9900,,\n$/);
  t.match(reasons, /,3,mid,9900,jump,/);
  for (let seed = 0; seed < 25; seed += 1) {
    const code = `S-${seed}`;
    await describePrices(client, code);
    const random = randomOf(seed);
    const day = (index: number) => `2026-01-${String(index + 1).padStart(2, '0')}`;
    const some = (share: number) =>
      Array.from({ length: 20 }, (_, index) => index)
        .filter(() => random() < share)
        .map(
          (index) =>
            `${code},${day(index)},,${['1', '3', '10', '40', '-2'][Math.floor(random() * 5)]},,`,
        );
    const held = some(0.2);
    if (held.length > 0) await loadText(t, client, 'csv', points(...held));
    const before = new Map((await seriesOf(pool, code)).map(([date, , mid]) => [date, mid]));
    const { counts } = (await setAside(t, database, points(...some(0.7)), strict)).report;
    t.equal(
      counts.rows,
      counts.inserted + counts.unchanged + counts.corrected + counts.outdated + counts.rejected,
    );
    const after = (await seriesOf(pool, code)).map(
      ([date, , mid]) => [String(date), Number(mid)] as const,
    );
    for (const [index, [date, mid]] of after.entries()) {
      const [previous, other] = after[index - 1] ?? [];
      if (previous === undefined || other === undefined) continue;
      const isOld = [date, previous].every((each) => before.has(each));
      const ratio = Math.abs(mid) / Math.abs(other);
      const isJump = Math.sign(mid) !== Math.sign(other) || ratio > 5 || ratio < 0.2;
      t.ok(isOld || !isJump, `seed ${seed}: ${previous} ${other}, ${date} ${mid}`);
    }
  }
});

t.test('a spreadsheet runs no value of the reasons', async (t) => {
  const database = await loadingDatabase(t);
  const codes = points('=1+1,2026-01-08,1,2,3,', 'x;=1+1;y,2026-01-08,1,2,3,');
  const { text, reasons } = await setAside(t, database, codes);
  t.match(text, /^=1\+1,.*\nx;=1\+1;y,/m, 'the rows stay as they are');
  t.match(reasons, /,2,code,'=1\+1,/);
  t.match(reasons, /,3,code,"x;'=1\+1;y",/);
});
