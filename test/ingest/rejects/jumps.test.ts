import tap from 'tap';
import { randomOf } from '../../conversion/support.ts';
import {
  CORRECTING,
  describePayable,
  describePrices,
  errorsOf,
  loadingDatabase,
  loadText,
  points,
  seriesOf,
} from '../support/loading.ts';

/** Rejects jumps; other tests accept them. */
const STRICT = { acceptJumps: false };

type LoadingDatabase = Awaited<ReturnType<typeof loadingDatabase>>;

/** Loads points and rejects jumps. @returns the lines of the rejected rows */
async function jumpsIn(
  t: Pick<typeof tap, 'teardown' | 'ok'>,
  { client }: LoadingDatabase,
  ...rows: string[]
): Promise<unknown[]> {
  const report = await loadText(t, client, 'csv', points(...rows), { ...STRICT, ...CORRECTING });
  t.ok(report.errors.every(({ code }) => code === 'jump'));
  return report.errors.map(({ line }) => line);
}

tap.test(
  'a value more than five times its neighbour is refused unless jumps are accepted',
  async (t) => {
    const database = await loadingDatabase(t);
    const { client, pool } = database;
    await describePrices(client, 'A');
    const rows = points('A,2026-01-01,,101,,', 'A,2026-01-08,,1020,,', 'A,2026-01-15,,1030,,');
    const refused = await loadText(t, client, 'csv', rows, STRICT);
    t.match(refused, { status: 'refused', counts: { rows: 3, rejected: 1 } });
    t.strictSame(errorsOf(refused), [[3, 'mid', 'jump']]);
    t.equal(
      refused.errors[0]?.message,
      'The value of A, 2026-01-08, is 1020: it differs from that of 2026-01-01, 101, by more ' +
        'than a factor of 5; to load it use --accept-jumps',
    );
    t.strictSame(await seriesOf(pool, 'A'), []);
    t.match(await loadText(t, client, 'csv', rows), { status: 'applied', counts: { inserted: 3 } });
    const wider = points('A,2026-01-22,,10300,,');
    t.match(await loadText(t, client, 'csv', wider, { ...STRICT, jumpFactor: '9.999' }), {
      errors: [
        { code: 'jump', message: /that of 2026-01-15, 1030, by more than a factor of 9\.999/ },
      ],
    });
    t.match(await loadText(t, client, 'csv', wider, { ...STRICT, jumpFactor: '10' }), {
      status: 'applied',
    });
  },
);

tap.test('the factor is compared exactly, up and down, in every value of a row', async (t) => {
  const database = await loadingDatabase(t);
  await describePrices(database.client, ...'ABCDEFGHIJ');
  const pairs = {
    A: ['0.07', '0.35', false],
    B: ['0.07', '0.3500000001', true],
    C: ['0.35', '0.07', false],
    D: ['0.3500000001', '0.07', true],
    E: ['-0.07', '-0.35', false],
    F: ['-0.07', '-0.3500000001', true],
    G: ['5', '0', true],
    H: ['0', '0', false],
    I: ['5', '-5', true],
    J: ['199999999999999', '999999999999995', false],
  } as const;
  for (const [code, [one, other, isJump]] of Object.entries(pairs)) {
    const jumps = await jumpsIn(
      t,
      database,
      `${code},2026-01-01,,${one},,`,
      `${code},2026-01-02,,${other},,`,
    );
    t.strictSame(jumps, isJump ? [3] : [], `${one} to ${other}`);
  }
  await describePrices(database.client, 'LOW', 'HIGH');
  const low = ['LOW,2026-01-01,9,10,11,', 'LOW,2026-01-02,1,10,11,'];
  const high = ['HIGH,2026-01-01,9,10,11,', 'HIGH,2026-01-02,9,10,111,'];
  const report = await loadText(t, database.client, 'csv', points(...low, ...high), STRICT);
  t.strictSame(
    report.errors.map(({ line, column, value }) => [line, column, value]),
    [
      [3, 'low', '1'],
      [5, 'high', '111'],
    ],
    'the part that jumps is named',
  );
});

tap.test(
  'neighbours are those of the series as it would stand, at most 400 days away',
  async (t) => {
    const database = await loadingDatabase(t);
    const { client } = database;
    await describePrices(client, 'A', 'B', 'C');
    const known = ['A,2020-06-10,,10,,', 'A,2020-06-20,,10,,', 'A,2020-06-30,,10,,'];
    t.strictSame(await jumpsIn(t, database, ...known), []);
    t.strictSame(await jumpsIn(t, database, 'A,2020-06-15,,99,,'), [2], 'between two values');
    t.strictSame(await jumpsIn(t, database, 'A,2020-06-01,,99,,'), [2], 'before the first');
    t.strictSame(await jumpsIn(t, database, 'A,2020-07-01,,99,,'), [2], 'after the last');
    t.strictSame(await jumpsIn(t, database, 'A,2020-06-20,,99,,'), [2], 'against what it replaces');
    const around = ['A,2020-06-05,,49,,', 'A,2020-06-15,,49,,', 'A,2020-07-05,,51,,'];
    t.strictSame(await jumpsIn(t, database, ...around), [4], 'the others keep to their neighbours');
    t.strictSame(
      await jumpsIn(t, database, 'A,2020-06-25,,99,,', 'A,2020-06-15,,10,,', 'A,2020-06-20,,11,,'),
      [2],
      'out of order',
    );
    t.strictSame(
      await jumpsIn(t, database, 'B,2020-01-01,,1,,', 'B,2021-02-04,,9,,'),
      [3],
      '400 days',
    );
    t.strictSame(
      await jumpsIn(t, database, 'C,2020-01-01,,1,,', 'C,2021-02-05,,9,,'),
      [],
      '401 days',
    );
  },
);

tap.test('what a load leaves alone is not held against it', async (t) => {
  const database = await loadingDatabase(t);
  const { client } = database;
  await describePrices(client, 'A');
  const accepted = ['A,2026-01-01,,1,,', 'A,2026-01-02,,100,,'];
  await loadText(t, client, 'csv', points(...accepted), { vintage: '2026-02-01' });
  t.strictSame(await jumpsIn(t, database, ...accepted, 'A,2026-01-03,,120,,'), []);
  const older = { ...STRICT, ...CORRECTING, vintage: '2026-01-15' };
  const outdated = await loadText(t, client, 'csv', points('A,2026-01-01,,77,,'), older);
  t.match(outdated, { status: 'unchanged', counts: { outdated: 1 } });
});

tap.test('payables and rates may not jump either', async (t) => {
  const database = await loadingDatabase(t);
  const { client } = database;
  await describePayable(client, 'PAY');
  t.strictSame(await jumpsIn(t, database, 'PAY,2026-01-01,,85,,', 'PAY,2026-01-02,,8.5,,'), [3]);
  const rates = 'Date,USD,JPY,\n2026-01-06,1.09,158.1,\n2026-01-05,10.9,157.9,\n';
  const report = await loadText(t, client, 'ecb', rates, STRICT);
  t.match(report, { status: 'refused', errors: [{ line: 2, column: 'USD', code: 'jump' }] });
  t.match(await loadText(t, client, 'ecb', rates), { status: 'applied' });
});

/** Converts a decimal to an integer with ten decimals. */
function scaled(text: string): bigint {
  const [whole = '', fraction = ''] = text.replace('-', '').split('.');
  const size = BigInt(whole + fraction.padEnd(10, '0'));
  return text.startsWith('-') ? -size : size;
}

/** The jump rule in integer arithmetic. */
function jump(one: string, other: string): boolean {
  const [a, b] = [scaled(one), scaled(other)];
  const size = (value: bigint) => (value < 0n ? -value : value);
  if (a === b) return false;
  if (a * b <= 0n) return true;
  return size(a) > size(b) ? size(a) > 5n * size(b) : size(b) > 5n * size(a);
}

const day = (index: number): string => `2026-01-${String(index + 1).padStart(2, '0')}`;

/** The indexes of the rows that jump in the resulting series. */
function expected(held: ReadonlyMap<number, string>, file: readonly [number, string][]): number[] {
  const standing = new Map([...held, ...file]);
  const days = [...standing.keys()].sort((a, b) => a - b);
  const changes = new Set(file.filter(([at, mid]) => held.get(at) !== mid).map(([at]) => at));
  return file.flatMap(([at, mid], index) => {
    if (!changes.has(at)) return [];
    const place = days.indexOf(at);
    const [previous, next] = [days[place - 1], days[place + 1]];
    const own = held.get(at);
    const isJump =
      (own !== undefined && jump(own, mid)) ||
      (previous !== undefined && jump(standing.get(previous) ?? '', mid)) ||
      (next !== undefined && !changes.has(next) && jump(standing.get(next) ?? '', mid));
    return isJump ? [index + 2] : [];
  });
}

tap.test(
  'jumps are found as integers find them, whatever is there and in what order',
  async (t) => {
    const database = await loadingDatabase(t);
    const { client } = database;
    const codes = Array.from({ length: 60 }, (_, seed) => `R-${seed}`);
    await describePrices(client, ...codes);
    const values = ['1', '2', '4.9999999999', '5', '10', '10.0000000001', '50', '-1', '0', '49.5'];
    for (const [seed, code] of codes.entries()) {
      const random = randomOf(seed);
      const pick = (): string => values[Math.floor(random() * (seed % 2 ? 7 : 10))] ?? '';
      const some = (share: number): [number, string][] =>
        Array.from({ length: 12 }, (_, index) => index)
          .filter(() => random() < share)
          .map((index) => [index, pick()]);
      const held = some(0.4);
      const row = ([at, mid]: [number, string]) => `${code},${day(at)},,${mid},,`;
      if (held.length > 0) await loadText(t, client, 'csv', points(...held.map(row)));
      const file = some(0.6).sort(() => random() - 0.5);
      if (file.length === 0) continue;
      const found = await jumpsIn(t, database, ...file.map(row));
      t.strictSame(found, expected(new Map(held), file), `seed ${seed}`);
    }
  },
);
