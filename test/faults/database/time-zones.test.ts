import { createHash } from 'node:crypto';
import t from 'tap';
import {
  administer,
  setting,
  type TestDatabase,
  testDatabase,
} from '../../support/database/database.ts';
import { startServiceProcess } from '../../support/http/service-process.ts';
import { within } from '../../support/process/figures.ts';
import { codeOf, type HttpAnswer, type HttpRequest, sendAll } from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';

/** Time zones: both sides of the date line, one with daylight saving time, and UTC. */
const ZONES = ['America/New_York', 'Pacific/Kiritimati', 'UTC'];

/** Settings: every answer comes from the database. */
const NO_BOOK = { PRICE_BOOK_BYTES: '0' };

interface Everywhere {
  /** The answers in each zone, in the order of the questions. */
  readonly zones: readonly (readonly [zone: string, answers: readonly HttpAnswer[]])[];
  /** The number of distinct byte sequences. */
  readonly different: number;
}

/** Sends the same requests under every combination of process and database time zones. */
async function everywhere(
  database: TestDatabase,
  asks: readonly HttpRequest[],
): Promise<Everywhere> {
  const name = new URL(database.url).pathname.slice(1);
  const digests = new Set<string>();
  const zones: [string, HttpAnswer[]][] = [];
  for (const zone of ZONES) {
    await administer(
      setting('TEST_DATABASE_URL'),
      `alter database "${name}" set timezone to '${zone}'`,
    );
    const service = await startServiceProcess(t, database, { TZ: zone, PGTZ: zone, ...NO_BOOK });
    const answers = await sendAll(t, service, asks, 4);
    const hash = createHash('sha256');
    // Rejections differ only in their request id.
    for (const { status, text } of answers) {
      hash.update(`${status} ${text.replace(/"requestId":"[^"]+"/, '')}\n`);
    }
    digests.add(hash.digest('hex'));
    zones.push([zone, answers]);
    service.running.child.kill('SIGTERM');
    await service.running.ended;
  }
  return { zones, different: digests.size };
}

const post = (filters: object, options: object = {}): HttpRequest => ({
  path: '/v3/prices/nickel',
  body: JSON.stringify({ filters, options }),
});

/** A name and equivalent spellings of it. */
const twinsOf = (name: string): string[] => [
  name.normalize('NFC'),
  name.normalize('NFD'),
  name.toUpperCase(),
  name.toLowerCase(),
  ` ${name}\u00a0`,
  name.replace(/[!-~]/g, (each) => String.fromCharCode(each.charCodeAt(0) + 0xfee0)),
  name.replaceAll(' ', '\u3000 '),
  // The capital of the dotless i is I.
  name.replace(/i/i, '\u0131'),
];

/** Texts that resemble the name but are different. */
const lookalikesOf = (name: string): string[] => [
  name.replace(/[aeo]/, (each) => ({ a: '\u0430', e: '\u0435', o: '\u043e' })[each] ?? each),
  name.replace(/i/i, '\u0130'),
  `${name}\u200b`,
  `\u202e${name}`,
  `${name}\u0301`,
  `${name.slice(0, 2)}\u00ad${name.slice(2)}`,
  `${name}😀`,
  '👩‍👩‍👧‍👦',
  '\ufeff',
  '\uffff',
  '\u{10ffff}',
  'אבג',
  '中文'.repeat(30),
];

/** Characters that no item may contain, as JSON escapes. */
const BROKEN = ['\\u0000', '\\u0007', '\\u007f', '\\u0085', '\\ud800', '\\udc00\\ud800', '\\n'];

const dayOf = (days: number): string => new Date(days * 86_400_000).toISOString().slice(0, 10);

/** Days around daylight saving changes, year ends and leap days. */
const EDGES = [
  ...['2026-03-08', '2026-03-07', '2026-03-09', '2025-11-02', '2025-11-01', '2025-11-03'],
  ...['2025-12-31', '2026-01-01', '2024-02-29', '2024-02-28', '2024-03-01', '2000-02-29'],
  ...['1800-01-01', '2199-12-31', '1994-12-31', '1995-01-01', '1999-12-31', '2026-06-30'],
];

/** Date bounds, mostly around the data, some at the limits; sometimes only one. */
function rangesOf(count: number): { dateFrom?: string; dateTo?: string }[] {
  let seed = 20_260_630;
  const random = (below: number): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  const day = (): string =>
    random(4) === 0 ? (EDGES[random(EDGES.length)] ?? '') : dayOf(20_454 - random(900));
  return Array.from({ length: count }, () => {
    const [dateFrom = '', dateTo = ''] = [day(), day()].toSorted();
    const draw = random(10);
    if (draw === 0) return { dateFrom };
    return draw === 1 ? { dateTo } : { dateFrom, dateTo };
  });
}

interface SeriesList {
  readonly data: readonly { readonly code: string; readonly series: { readonly date: string }[] }[];
}

const database = await testDatabase(t, { seeded: true });

const { rows } = await database.pool.query<{ name: string; codes: string[] }>(
  `select product.name, (array_agg(code order by code)) as codes
    from price join product on product.id = product_id
      join market m on m.id = price.market_id
    where m.slug = 'nickel' group by product.name order by min(code)`,
);
const names = rows.map(({ name }) => name).slice(0, byLength(2, 50));
const twins = names.flatMap((name) => twinsOf(name).map((each) => [name, each] as const));
const lookalikes = names.flatMap(lookalikesOf).filter((each) => !names.includes(each));
const texts: readonly HttpRequest[] = [
  ...names.map((name) => post({ products: [name] })),
  ...twins.map(([, twin]) => post({ products: [twin] })),
  ...lookalikes.map((each) => post({ products: [each] })),
  ...lookalikes.map((each) => post({ codes: [each] })),
  ...BROKEN.map((each) => ({
    path: '/v3/prices/nickel',
    body: `{"filters":{"products":["Nickel${each}"],"codes":["${each}"]}}`,
  })),
];

const codes = (rows[0]?.codes ?? []).slice(0, 1);
const ranges = rangesOf(byLength(60, 5_000));
const days: readonly HttpRequest[] = [
  post({ codes }, { includeSeries: true }),
  ...ranges.map((range) => post({ codes, ...range }, { includeSeries: true })),
];

const results = await everywhere(database, [...texts, ...days]);

fault(
  'F23',
  'edge cases of Unicode, in three time zones',
  'no 5xx; NFC = NFD, full width = ASCII, case and space are ignored; look-alikes match ' +
    'nothing; the same bytes in each zone',
  async (t) => {
    const dataOf = (answer: HttpAnswer | undefined): string =>
      JSON.stringify((JSON.parse(answer?.text ?? '{}') as { data: unknown }).data);
    for (const [, answers] of results.zones) {
      const rest = answers.slice(0, texts.length);
      const plain = new Map(rest.splice(0, names.length).map((each, at) => [names[at], each]));
      for (const [at, each] of rest.splice(0, twins.length).entries()) {
        const [name, twin] = twins[at] ?? [];
        t.equal(dataOf(each), dataOf(plain.get(name)), `${name} as ${JSON.stringify(twin)}`);
      }
      for (const each of rest.splice(0, 2 * lookalikes.length)) {
        t.equal(each.status, 200);
        t.equal(dataOf(each), '[]');
      }
      t.same([...new Set(rest.map(codeOf))], ['validation_failed']);
      t.ok(rest.every(({ status }) => status === 400));
    }
    t.equal(results.different, 1, 'the same bytes everywhere');
    const all = results.zones.flatMap(([, answers]) => answers);
    return {
      texts: texts.length,
      zones: ZONES.length,
      '5xx': all.filter(({ status }) => status >= 500).length,
      'different answers': within(results.different - 1, 0, 'answers'),
    };
  },
);

fault(
  'F24',
  'random date ranges, in three time zones',
  'each series has exactly the points whose dates, compared as text, lie in the range; the ' +
    'same bytes in each zone',
  async (t) => {
    const parse = ({ text }: HttpAnswer): SeriesList => JSON.parse(text) as SeriesList;
    const wrong: string[] = [];
    const right = new Set<string>();
    for (const [zone, answers] of results.zones) {
      const [first, ...rest] = answers.slice(texts.length);
      const whole = parse(first as HttpAnswer).data;
      t.ok(whole.every(({ series }) => series.length > 100));
      for (const [at, answer] of rest.entries()) {
        if (right.has(`${at} ${answer.text}`)) continue;
        const { dateFrom = '', dateTo = '9999' } = ranges[at] ?? {};
        const expected = whole.map(({ code, series }) => [
          code,
          series.filter(({ date }) => date >= dateFrom && date <= dateTo),
        ]);
        const found = parse(answer).data?.map(({ code, series }) => [code, series]);
        if (JSON.stringify(found) === JSON.stringify(expected)) right.add(`${at} ${answer.text}`);
        else wrong.push(`${zone} ${JSON.stringify(ranges[at])} ${answer.text.slice(0, 200)}`);
      }
    }
    t.same(wrong, []);
    t.equal(results.different, 1, 'the same bytes everywhere');
    return {
      ranges: ranges.length,
      zones: ZONES.length,
      'different from the oracle': wrong.length,
      'different answers': within(results.different - 1, 0, 'answers'),
    };
  },
);
