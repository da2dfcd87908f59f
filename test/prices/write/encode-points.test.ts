import fc from 'fast-check';
import t from 'tap';
import { NO_DAY } from '../../../src/conversion/calendar.ts';
import type { DecimalColumn, PointColumns } from '../../../src/conversion/columns.ts';
import { currencyRates } from '../../../src/conversion/rate-table.ts';
import type { RecordContext } from '../../../src/prices/answer/answer.ts';
import type { Plan } from '../../../src/prices/plan/plan.ts';
import type { Contents } from '../../../src/prices/write/points.ts';
import { ANY_MEMORY } from '../../support/prices/any-memory.ts';
import { dayText, decimalText, instantText } from '../../support/prices/decimals.ts';
import { pointsText } from '../../support/prices/points-text.ts';

const DAYS = { min: -73_048, max: 73_048 };

/** A number as a column holds it: scaled, null, or too wide for a double. */
type CellNumber =
  | { readonly scaled: bigint; readonly scale: number }
  | { readonly wide: string }
  | null;

const scaled = fc.record({
  scaled: fc.oneof(
    fc.bigInt({ min: -(2n ** 53n), max: 2n ** 53n }),
    fc.bigInt({ min: -(2n ** 31n) - 1n, max: 2n ** 31n }),
  ),
  scale: fc.integer({ min: 0, max: 22 }),
});

const wide = fc
  .tuple(fc.constantFrom('', '-'), fc.bigInt({ min: 2n ** 53n, max: 10n ** 300n }))
  .map(([sign, digits]) => ({ wide: `${sign}${digits}` }));

const cell: fc.Arbitrary<CellNumber> = fc.oneof(
  { weight: 6, arbitrary: scaled },
  { weight: 1, arbitrary: wide },
  { weight: 1, arbitrary: fc.constant(null) },
);

const textOf = (value: CellNumber): string => {
  if (value === null) return 'null';
  return 'wide' in value ? value.wide : decimalText(value.scaled, value.scale);
};

function columnOf(cells: readonly CellNumber[]): DecimalColumn {
  const wides = cells.flatMap((each, index): [number, string][] =>
    each !== null && 'wide' in each ? [[index, each.wide]] : [],
  );
  const number = (each: CellNumber): number => {
    if (each === null) return Number.NaN;
    return 'wide' in each ? Number.POSITIVE_INFINITY : Number(each.scaled);
  };
  return {
    scaled: Float64Array.from(cells, number),
    scale: Uint8Array.from(cells, (each) => (each !== null && 'scale' in each ? each.scale : 0)),
    wide: wides.length > 0 ? new Map(wides) : null,
  };
}

const leg = fc.record({
  scaled: fc.bigInt({ min: 1n, max: 10n ** 15n - 1n }),
  scale: fc.integer({ min: 0, max: 10 }),
});

const point = fc.record({
  day: fc.integer(DAYS),
  values: fc.tuple(cell, cell, cell),
  movingAverage: cell,
  publishedAt: fc.bigInt({ min: -6_311_433_600_000_000n, max: 6_311_433_599_999_999n }),
  corrections: fc.nat(),
  vat: fc.option(fc.record({ scaled: fc.bigInt(0n, 999_999n), scale: fc.nat({ max: 4 }) })),
  rate: fc.option(fc.record({ day: fc.integer(DAYS), from: leg, to: leg })),
  period: fc.record({
    start: fc.integer(DAYS),
    observations: fc.integer({ min: 0 }),
    leftOut: fc.nat({ max: 3 }),
    lacking: fc.constantFrom('no-rate', 'no-vat-rate'),
  }),
});
type RandomPoint = typeof point extends fc.Arbitrary<infer T> ? T : never;

const BASES = ['EUR', 'USD'];

/** The kinds of rates of points. */
const RATED = ['rates', 'means'];

/** The first rate day and the number of rate days of a mean, which depend on the last one. */
const spanOf = (last: number) => ({ first: Math.max(DAYS.min, last - 25), days: 1 + (last & 15) });

/** The mean rates of some points; `from` of each is the mean. */
function meansOf(points: readonly RandomPoint[]) {
  const spans = points.map(({ rate }) => (rate === null ? null : spanOf(rate.day)));
  return {
    first: Int32Array.from(spans, (span) => span?.first ?? NO_DAY),
    days: Int32Array.from(spans, (span) => span?.days ?? 0),
    rate: columnOf(points.map(({ rate }) => rate?.from ?? null)),
    exact: [],
    nearest: new Float64Array(),
  };
}

/** The columns of some points, with rates of days, mean rates, periods or none of them. */
function columnsOf(points: readonly RandomPoint[], kind: string, base: string): PointColumns {
  const column = (at: 0 | 1 | 2) => columnOf(points.map((each) => each.values[at]));
  const legs = (name: 'from' | 'to') => columnOf(points.map(({ rate }) => rate?.[name] ?? null));
  return {
    length: points.length,
    day: Int32Array.from(points, (each) => each.day),
    low: column(0),
    mid: column(1),
    high: column(2),
    publishedAt: Float64Array.from(points, (each) => Number(each.publishedAt)),
    corrections: Int32Array.from(points, (each) => each.corrections),
    fx: RATED.includes(kind)
      ? {
          // Legs of their own, as of another table of rates.
          pair: {
            source: 'ECB',
            base,
            from: currencyRates('USD', '0', '1'),
            to: null,
            meanOf: kind === 'means' ? 'month' : null,
          },
          day: Int32Array.from(points, ({ rate }) => rate?.day ?? NO_DAY),
          from: legs('from'),
          to: legs('to'),
          means: kind === 'means' ? meansOf(points) : null,
        }
      : null,
    vat: kind === 'taxed' ? columnOf(points.map(({ vat }) => vat)) : null,
    periods:
      kind === 'periods'
        ? {
            start: Int32Array.from(points, ({ period }) => period.start),
            end: Int32Array.from(points, ({ day }) => day),
            observations: Int32Array.from(points, ({ period }) => period.observations),
            leftOut: Int32Array.from(points, ({ period }) => period.leftOut),
            lacking: points.map(({ period }) => period.lacking),
          }
        : null,
    ...(kind !== 'periods' && {
      movingAverage: columnOf(points.map((each) => each.movingAverage)),
    }),
  };
}

/** A day has one rate of a pair, that of the first point that has it. */
function oneRateADay(points: readonly RandomPoint[]): RandomPoint[] {
  const rates = new Map<number, RandomPoint['rate']>();
  return points.map((each) => {
    if (each.rate === null) return each;
    const rate = rates.get(each.rate.day) ?? each.rate;
    rates.set(rate.day, rate);
    return { ...each, rate };
  });
}

const ratesText = ({ rate }: RandomPoint, base: string): string => {
  if (!rate) return '';
  const legs = `"from":"${textOf(rate.from)}","to":"${textOf(rate.to)}"`;
  return `,"fx":{"date":"${dayText(rate.day)}","base":"${base}",${legs}}`;
};

const meanText = ({ rate }: RandomPoint): string => {
  if (!rate) return '';
  const { first, days } = spanOf(rate.day);
  const dates = `"firstDate":"${dayText(first)}","lastDate":"${dayText(rate.day)}"`;
  return `,"fxMean":{${dates},"days":${days},"rate":"${textOf(rate.from)}"}`;
};

const periodText = ({ day, period: { start, observations, leftOut } }: RandomPoint): string => {
  const ends = `"periodStart":"${dayText(start)}","periodEnd":"${dayText(day)}"`;
  const counts = leftOut > 0 ? `,"observationsLeftOut":${leftOut}` : '';
  return `,${ends},"observations":${observations}${counts}`;
};

/** The same points as text, put together by hand. */
function textsOf(points: readonly RandomPoint[], kind: string, base: string): string {
  const texts = points.map((each) => {
    const [low, mid, high] = each.values.map(textOf);
    const members = [
      `"date":"${dayText(each.day)}","low":${low},"mid":${mid},"high":${high}`,
      `"publishedAt":"${instantText(each.publishedAt)}","corrections":${each.corrections}`,
    ].join(',');
    const ofDay = kind === 'rates' ? ratesText(each, base) : '';
    const rates = kind === 'means' ? meanText(each) : ofDay;
    const mean = kind === 'periods' ? '' : `,"movingAverage":${textOf(each.movingAverage)}`;
    const ofPoint = kind === 'taxed' ? 'no-vat-rate' : 'no-rate';
    const lacking = kind === 'periods' ? each.period.lacking : ofPoint;
    const reason = mid === 'null' ? `,"conversionReason":"${lacking}"` : '';
    const tax = kind === 'taxed' && each.vat ? `,"vatRate":"${textOf(each.vat)}"` : '';
    const period = kind === 'periods' ? periodText(each) : '';
    return `{${members}${rates}${tax}${period}${mean}${reason}}`;
  });
  return texts.join(',');
}

t.test(
  'converted and aggregated points are encoded to the digit, whatever they hold',
  async (t) => {
    let encoded = 0;
    const found = new Set<string>();
    fc.assert(
      fc.property(
        fc.array(point, { maxLength: 60, size: 'max' }).map(oneRateADay),
        fc.constantFrom('native', 'rates', 'means', 'taxed', 'periods'),
        fc.constantFrom(...BASES),
        (points, kind, base) => {
          const wanted = textsOf(points, kind, base);
          const got = pointsText(columnsOf(points, kind, base)).toString('latin1');
          if (got !== wanted) throw new Error(`${got}\nshould be\n${wanted}`);
          JSON.parse(`[${got}]`);
          encoded += points.length;
          for (const { values, rate, vat } of points) {
            if (values[1] === null) found.add('a null mid');
            if (values.some((each) => each !== null && 'wide' in each)) found.add('a wide number');
            if (RATED.includes(kind) && !rate) found.add('a point without a rate');
            if (kind === 'taxed' && !vat) found.add('a point without a rate of VAT');
          }
        },
      ),
      { numRuns: 300 },
    );
    t.ok(encoded > 5_000, `${encoded} points`);
    t.equal(found.size, 4, [...found].join(', '));
  },
);

t.test('the longest converted points fit, thousands of times over', async (t) => {
  const number = { scaled: -(2n ** 53n), scale: 22 };
  const rate = { scaled: 999_999_999_999_999n, scale: 10 };
  const longest: RandomPoint = {
    day: DAYS.min,
    movingAverage: number,
    values: [number, number, { wide: `-${'9'.repeat(2_000)}` }],
    publishedAt: -6_311_433_599_999_999n,
    corrections: 2_147_483_647,
    rate: { day: DAYS.min, from: rate, to: rate },
    vat: { scaled: 999_999n, scale: 4 },
    period: { start: 0, observations: 1, leftOut: 0, lacking: 'no-rate' },
  };
  const points = Array.from({ length: 3_000 }, () => longest);
  for (const kind of [...RATED, 'taxed']) {
    const got = pointsText(columnsOf(points, kind, 'EUR')).toString('latin1');
    t.ok(got === textsOf(points, kind, 'EUR'), kind);
  }
});

t.test('a wide table has every digit of numbers with a hundred decimals', async (t) => {
  const { wideRows, wideSlices } = await import('../../../src/prices/write/wide.ts');
  const { notationOf } = await import('../../../src/prices/write/rows.ts');
  const number = { scaled: 123_456n, scale: 100 };
  const mid = columnOf(new Array(200).fill(number));
  const points = { day: Int32Array.from({ length: 200 }, (_, day) => day), mid };
  async function* records() {
    for (const code of 'abcdefghijklmnopqrst') {
      const currencyAndUnit = { currency: null, unitOfMeasure: { name: 'Percent' } };
      yield { price: { code }, currencyAndUnit, points } as unknown as Contents;
    }
  }
  for (const isJson of [false, true]) {
    const page = { limit: null, after: null };
    const plan = { options: { decimalsAsText: false }, page } as Plan;
    const context = { plan, wideCellsMax: 1_000_000, work: ANY_MEMORY } as RecordContext;
    const slices: Buffer[] = [];
    for await (const each of wideSlices(context, records(), (names) =>
      wideRows(notationOf(plan, isJson), names, []),
    )) {
      slices.push(each);
    }
    const text = Buffer.concat(slices).toString();
    t.equal(text.split(decimalText(number.scaled, number.scale)).length - 1, 20 * 200);
  }
});

t.test(
  'a wide table is refused before it takes memory that the budget does not grant',
  async (t) => {
    const { wideRows, wideSlices } = await import('../../../src/prices/write/wide.ts');
    const { notationOf } = await import('../../../src/prices/write/rows.ts');
    let read = 0;
    async function* records() {
      for (; read < 1_000; read += 1) {
        const mid = columnOf(new Array(2_000).fill({ scaled: 2n ** 40n, scale: 0 }));
        const points = { day: Int32Array.from({ length: 2_000 }, (_, day) => day), mid };
        const currencyAndUnit = { currency: null, unitOfMeasure: { name: 'Percent' } };
        yield { price: { code: `c${read}` }, currencyAndUnit, points } as unknown as Contents;
      }
    }
    const plan = { options: {}, page: { limit: null, after: null } } as Plan;
    const first = (hold: () => boolean, holdMax: number) => {
      read = 0;
      const work = { ...ANY_MEMORY, hold, holdMax };
      const context = { plan, wideCellsMax: 10_000_000, work } as unknown as RecordContext;
      return wideSlices(context, records(), (names) =>
        wideRows(notationOf(plan, false), names, []),
      ).next();
    };
    await t.rejects(
      first(() => false, Number.POSITIVE_INFINITY),
      { code: 'overloaded', statusCode: 503, headers: { 'retry-after': /^[1-5]$/ } },
    );
    t.ok(read < 10, `${read} columns were read`);
    await t.rejects(
      first(() => true, 1_048_576),
      { code: 'validation_failed', errors: [{ detail: /at most 1 MB of numbers/ }] },
    );
    t.ok(read < 100, `${read} columns were read`);
  },
);
