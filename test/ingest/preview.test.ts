import t from 'tap';
import { previewLines } from '../../src/cli/load/report.ts';
import type { LoadPreview } from '../../src/ingest/load/request.ts';
import {
  CORRECTING,
  describePrices,
  loadFile,
  loadingDatabase,
  loadText,
  points,
  seriesOf,
  stateOf,
} from './support/loading.ts';

/** Descriptions and points with every kind of change that a load can make. */
const LINES = [
  { value: { dimension: 'priceCategory', name: 'Brand new' } },
  { price: { code: 'A', name: 'Another name', priceCategory: 'Brand new' } },
  {
    price: {
      code: 'N',
      market: 'aluminium',
      name: 'A new price',
      product: 'Bauxite',
      priceCategory: 'Spot',
      priceType: 'Price',
      frequency: 'Weekly',
      currency: 'USD',
      unitOfMeasure: 'Tonne',
    },
  },
  { code: 'A', date: '2026-01-01', low: 1, mid: '2.50', high: 3 },
  { code: 'A', date: '2026-01-08', mid: 5 },
  { code: 'A', date: '2026-01-15', mid: 6 },
  { code: 'N', date: '2026-01-08', mid: 8 },
  { code: 'N', date: '2026-01-01', mid: 9 },
];

const EXPECTED = {
  newPrices: { total: 1, shown: [{ code: 'N', name: 'A new price' }] },
  changedPrices: {
    total: 2,
    shown: [
      { code: 'A', field: 'name', before: 'Price A', after: 'Another name' },
      { code: 'A', field: 'priceCategory', before: 'Spot', after: 'Brand new' },
    ],
  },
  newNames: { total: 1, shown: [{ kind: 'priceCategory', name: 'Brand new' }] },
  newCurrencies: [],
  newValues: {
    total: 2,
    values: 3,
    shown: [
      { code: 'A', values: 1, from: '2026-01-15', to: '2026-01-15' },
      { code: 'N', values: 2, from: '2026-01-01', to: '2026-01-08' },
    ],
  },
  corrections: {
    total: 1,
    shown: [
      {
        code: 'A',
        date: '2026-01-01',
        before: { low: '1', mid: '2', high: '3' },
        after: { low: '1', mid: '2.5', high: '3' },
      },
    ],
  },
  again: { total: 0, shown: [] },
  unchanged: 1,
  outdated: 0,
  rejected: 0,
};

t.test('a load shows its effect before it writes', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  await loadText(
    t,
    client,
    'csv',
    points('A,2026-01-01,1,2,3,', 'A,2026-01-08,,5,,', 'B,2026-01-01,,7,,'),
  );
  let seen: unknown = null;
  let current: LoadPreview | null = null;
  const onPreview = async (preview: LoadPreview) => {
    current = preview;
    seen = await seriesOf(pool, 'A');
  };
  const file = LINES.map((line) => JSON.stringify(line)).join('\n');
  const report = await loadText(t, client, 'ndjson', file, { ...CORRECTING, onPreview });
  t.match(report, {
    status: 'applied',
    counts: { rows: 5, inserted: 3, corrected: 1, unchanged: 1 },
  });
  t.strictSame((seen as unknown as unknown[]).length, 2, 'nothing was to be seen yet');
  t.strictSame(report.preview, current);
  t.strictSame(report.preview, EXPECTED);
});

t.test('a dry run shows the same, and changes nothing, not even the ledger', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A', 'B');
  await loadText(t, client, 'csv', points('A,2026-01-01,,1,,', 'B,2026-01-01,,1,,'), {
    vintage: '2026-02-01',
  });
  const file = points('A,2026-01-01,,2,,', 'A,2026-01-02,,3,,', 'B,2026-01-01,,1,,');
  const state = await stateOf(pool);
  const dry = { dryRun: true };
  const refused = await loadText(t, client, 'csv', file, dry);
  t.match(refused, { status: 'refused', batch: null, revision: null, errorsTotal: 1 });
  t.match(refused.preview, { newValues: { values: 1 }, corrections: { total: 1 }, unchanged: 1 });
  const fine = await loadText(t, client, 'csv', file, { ...CORRECTING, ...dry });
  t.match(fine, { status: 'previewed', batch: null, revision: null, errorsTotal: 0 });
  t.match(fine.counts, { rows: 3, inserted: 1, corrected: 1, unchanged: 1 });
  const older = { ...CORRECTING, ...dry, vintage: '2026-01-15' };
  const outdated = await loadText(t, client, 'csv', file, older);
  t.match(outdated.preview, { outdated: 1, corrections: { total: 0 } });
  t.match(await loadText(t, client, 'csv', points('A,x,,1,,'), dry), {
    status: 'refused',
    batch: null,
  });
  t.equal(await stateOf(pool), state);
  const path = await loadText(t, client, 'csv', file, CORRECTING);
  t.match(path, { status: 'applied', counts: fine.counts });
  t.match(await loadText(t, client, 'csv', file, { ...CORRECTING, ...dry }), {
    status: 'already-loaded',
    batch: path.batch,
  });
});

t.test('a preview promises no value that is refused', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const header =
    'code,date,mid,market,name,product,priceCategory,priceType,frequency,currency,unitOfMeasure';
  const described = (code: string, date: string, market: string) =>
    `${code},${date},7,${market},Z,Bauxite,Spot,Price,Weekly,USD,t`;
  const file = [
    header,
    described('N', '2026-01-01', 'aluminum'),
    described('N', '2026-01-08', 'aluminum'),
    described('M', '2026-01-01', 'aluminium'),
    'A,2026-01-01,2,aluminium,Another name,,,,,,',
    'A,2026-01-08,2,,,,,,,,',
    'A,2026-01-15,200,,,,,,,,',
  ];
  const { preview, errors } = await loadText(t, client, 'csv', `${file.join('\n')}\n`, {
    acceptJumps: false,
  });
  const shown = preview?.newValues.shown.map(({ code, values, from }) => [code, values, from]);
  t.strictSame(shown, [
    ['A', 1, '2026-01-08'],
    ['M', 1, '2026-01-01'],
  ]);
  t.equal(preview?.newValues.values, 2);
  t.ok(errors.some(({ code, line }) => code === 'unknown_market' && line === 2));
  t.ok(errors.some(({ code, line }) => code === 'jump' && line === 7));
});

t.test('a dry run waits for no writer, and no writer waits for it', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const writer = await pool.connect();
  await writer.query('begin; select lock_revisions()');
  const file = points('A,2026-01-01,,1,,');
  const dry = await loadText(t, client, 'csv', file, { dryRun: true });
  t.match(dry, { status: 'previewed' });
  await writer.query('rollback');
  writer.release();
});

t.test('long lists are counted whole and shown in part', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const day = (index: number) => new Date(Date.UTC(1900, 0, index + 1)).toISOString().slice(0, 10);
  const rows = (add: number) =>
    points(...Array.from({ length: 1_500 }, (_, index) => `A,${day(index)},,${index + add},,`));
  await loadText(t, client, 'csv', rows(1));
  const { preview } = await loadText(t, client, 'csv', rows(2), CORRECTING);
  t.equal(preview?.corrections.total, 1_500);
  t.equal(preview?.corrections.shown.length, 1_000);
  t.match(preview?.corrections.shown[999], { date: day(999), before: { mid: '1000' } });
});

t.test('rates are previewed by currency', async (t) => {
  const { client } = await loadingDatabase(t);
  const file = new URL('../fixtures/ecb-hist.csv', import.meta.url).pathname;
  const { preview } = await loadFile(client, 'ecb', file, { dryRun: true });
  t.ok((preview?.newValues.values ?? 0) > 0);
  t.ok(preview?.newValues.shown.every(({ code }) => /^[A-Z]{3}$/.test(code)));
});

t.test('a person sees every correction before it is made, with --all', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const days = Array.from({ length: 1_200 }, (_, at) =>
    new Date(Date.UTC(2020, 0, 1 + at)).toISOString().slice(0, 10),
  );
  const of = (mid: string): string => points(...days.map((day) => `A,${day},,${mid},,`));
  await loadText(t, client, 'csv', of('10'));
  const dryRun = { ...CORRECTING, dryRun: true } as const;
  const { preview } = await loadText(t, client, 'csv', of('11'), { ...dryRun, previewAll: true });
  if (preview === null) throw new Error('the load has no preview');
  const shown = (isWhole: boolean): string[] =>
    previewLines(preview, isWhole).filter((line) => / 10 → 11$/.test(line));
  t.equal(shown(true).length, 1_200);
  t.equal(shown(false).length, 10);
  t.match(previewLines(preview).at(-1), '  and 1,190 more; --all shows them');
  const few = await loadText(t, client, 'csv', of('11'), dryRun);
  t.match(few.preview?.corrections, { total: 1_200, shown: { length: 1_000 } });
});
