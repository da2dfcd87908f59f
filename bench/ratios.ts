import type { Loads } from './cluster.ts';
import type { ExplorerTimes } from './explorer.ts';
import type { Downloads } from './extras.ts';
import type { FormCost } from './formats.ts';
import type { TableCost } from './growth.ts';
import { costOf, samplesOf } from './measure.ts';
import type { HeldMemory } from './memory.ts';
import type { Results } from './results.ts';
import { REPEATED } from './workloads.ts';

/** A target and its measurement. */
export interface Ratio {
  readonly what: string;
  readonly value: number;
  readonly target: string;
  readonly isMet: boolean;
  /** The measured share of the allowance; up to 1 the target is met. */
  readonly share: number;
}

const most = (what: string, value: number, limit: number): Ratio => ({
  what,
  value,
  target: `≤ ${limit}`,
  isMet: value <= limit,
  share: limit === 0 ? value : value / limit,
});
const least = (what: string, value: number, limit: number): Ratio => ({
  what,
  value,
  target: `≥ ${limit}`,
  isMet: value >= limit,
  share: limit / value,
});

/** The difference between the service and each contender, by a word of the ratio. */
const BESIDE: Readonly<Record<string, string>> = {
  hello: 'hello: no credential, limits, filter or database; 12 bytes',
  raw: 'raw: no routing, credential, parsing, filter or database',
  'stack of plugins':
    'stack: helmet, rate-limit, under-pressure, key in memory; no database, no freshness',
  'bare SQL': 'bare SQL: no HTTP, credential, records or JSON',
  naive: 'naive: reads rows and makes objects; no credential or limits, rounded numbers',
  PostGraphile: 'plans GraphQL, reads rows, makes objects; no credential, limits or revisions',
  Platformatic: 'the same, and flat points without records',
  'from SQL ÷': 'reads the points of each request',
};

/** The difference between the service and the contender that a ratio names. */
export const besideOf = (what: string): string =>
  Object.entries(BESIDE).find(([word]) => what.includes(word))?.[1] ?? '';

/** The default budget of the price book, and the remaining memory of a process. */
const MEMORY_BYTES = (512 + 150) * 2 ** 20;

/** Readers of the samples of a run: the cost and the request rate of a contender. */
function figuresOf({ samples }: Results) {
  const cost = (who: string, workload: string, connections = 1): number =>
    costOf(samplesOf(samples, who, workload, connections));
  const rate = (who: string, workload: string, connections: number): number =>
    Math.max(...samplesOf(samples, who, workload, connections).map(({ perSecond }) => perSecond));
  const service = (workload: string, connections = 1) => cost('service', workload, connections);
  const fromSql = (workload: string) => cost('service, SQL', workload);
  return { cost, rate, service, fromSql };
}

/** Small answers: credential, limits and checks weigh more than the data. */
function smallRatios(results: Results): Ratio[] {
  const { cost, rate, service } = figuresOf(results);
  const { bare } = results;
  return [
    ...[1, 16, 64].map((many) => {
      const ratio = service('W1', many) / cost('hello', 'W1', many);
      const limit = many === 1 ? 3.5 : 2;
      return most(`W1: service ÷ Fastify hello world, ${many} connections`, ratio, limit);
    }),
    ...[16, 64].map((many) => {
      const ratio = service('W1', many) / cost('stack', 'W1', many);
      return most(`W1: service ÷ stack of plugins, ${many} connections`, ratio, 1);
    }),
    ...[1, 16, 64].map((many) => {
      const ratio = cost('PostGraphile', 'W1', many) / service('W1', many);
      return least(`W1: PostGraphile ÷ service, ${many} connections`, ratio, 20);
    }),
    ...(bare
      ? [
          least(
            'W2, 16 connections: rate of service ÷ bare SQL',
            rate('service', 'W2', 16) / bare.perSecond,
            1,
          ),
        ]
      : []),
  ];
}

/** Answers without the price book. */
function sqlRatios(results: Results): Ratio[] {
  const { cost, service, fromSql } = figuresOf(results);
  return [
    ...['W1', 'W2'].map((name) => {
      const ratio = cost('PostGraphile', name) / fromSql(name);
      return least(`${name}: PostGraphile ÷ service from SQL`, ratio, 2);
    }),
    least('W3: PostGraphile ÷ service from SQL', cost('PostGraphile', 'W3') / fromSql('W3'), 7),
    least('W3: naive ÷ service from SQL', cost('naive', 'W3') / fromSql('W3'), 5),
    least('W3, other days: from SQL ÷ service', fromSql('W3days') / service('W3days'), 3),
    least('W4: from SQL ÷ service', fromSql('W4') / service('W4'), 4),
    most('latest value of each price, from SQL, ms', fromSql('latest'), 30),
    most('latest value of each price: service ÷ W1', service('latest') / service('W1'), 10),
    most(
      'a year of a market as gzip, the first time: service ÷ the same from SQL',
      results.firstTime.gzipMs / results.firstTime.gzipSqlMs,
      0.7,
    ),
    ...['W1', 'W3'].map((name) => {
      const ratio = service(`${name}past`) / fromSql(name);
      return most(`${name}: a past revision ÷ the newest from SQL`, ratio, 1.2);
    }),
  ];
}

/** Long answers, dominated by the cost per byte. */
function longRatios(results: Results): Ratio[] {
  const { cost, service } = figuresOf(results);
  const { samples, slowReaderBytes } = results;
  const first = Math.min(...samplesOf(samples, 'service', 'W4', 1).map(({ firstMs }) => firstMs));
  return [
    ...REPEATED.map((name) =>
      most(
        `${name}, repeated: service ÷ raw buffer of the same`,
        service(name) / cost('raw', name),
        1.2,
      ),
    ),
    most('W3, other days: service ÷ raw buffer', service('W3days') / cost('raw', 'W3'), 12),
    most('W3 as CSV, gzip: service ÷ raw CSV', service('W3csvgzip') / cost('raw', 'W3csv'), 0.6),
    least('W3: naive ÷ service', cost('naive', 'W3') / service('W3'), 100),
    least('W3: PostGraphile ÷ service', cost('PostGraphile', 'W3') / service('W3'), 100),
    least('W3: Platformatic ÷ service', cost('Platformatic', 'W3') / service('W3'), 100),
    most('W3 gzip: service ÷ raw buffer of W3', service('W3gzip') / cost('raw', 'W3'), 0.6),
    most(
      'W3 gzip, 16 connections: service ÷ raw buffer of W3',
      service('W3gzip', 16) / cost('raw', 'W3', 16),
      1,
    ),
    most('W4 gzip: service ÷ raw buffer of W4', service('W4gzip') / cost('raw', 'W4'), 0.6),
    most('W4: first byte, ms', first, 15),
    most('W4: MB more memory for each reader that stands still', slowReaderBytes / 2 ** 20, 32),
    most(
      'a year of a market, the first time: converted ÷ as it is',
      results.firstTime.convertedMs / results.firstTime.nativeMs,
      1.6,
    ),
    ...results.coded.map(({ workload, bytes, gzipBytes }) =>
      most(`${workload}: bytes ÷ gzip -1`, bytes / gzipBytes, 1.05),
    ),
    most('W5 repeated: service ÷ W3', service('W5') / service('W3'), 2),
    least('W5: from SQL ÷ service', cost('service, SQL', 'W5') / service('W5'), 10),
  ];
}

/** A million points in the formats of tables. JSON is the first form. */
export function formatRatios(forms: readonly FormCost[]): Ratio[] {
  const json = forms.find(({ name }) => name === 'json');
  if (!json) return [];
  return forms.flatMap(({ name, bytes, firstMs, moreBytes }) => {
    if (!/^(parquet|arrow)/.test(name)) return [];
    const memory = most(`${name}: MB more memory`, moreBytes / 2 ** 20, 64);
    return name.startsWith('parquet')
      ? [most(`${name}: bytes ÷ JSON`, bytes / json.bytes, 0.125), memory]
      : [most(`${name}: first byte, ms`, firstMs, 50), memory];
  });
}

/** Ten prices of ten years in the explorer. */
export const explorerRatios = ({ drawnMs, redrawnMs, cursorMs }: ExplorerTimes): Ratio[] => [
  most('explorer: drawn, ms after the answer', drawnMs, 150),
  most('explorer: redrawn, ms after a click', redrawnMs, 80),
  most('explorer: move of the cursor, p95, ms', cursorMs, 16),
];

/** The loads of one table. */
export const loadRatios = (loads: Loads): Ratio[] => [
  least('load through the loader, rows/s', loads.rowsPerSecond, 100_000),
  least('load: rows a second ÷ plain COPY', loads.rowsPerSecond / loads.copiedPerSecond, 0.6),
  most(
    'load: 65,000 corrections ÷ first load',
    loads.correctionSeconds / loads.firstLoadSeconds,
    2,
  ),
];

/** Most memory of a service with its defaults, in MB: four fifths of the limit of the manifests. */
const PROCESS_MB_MAX = 1_638;

/** The largest memory of a process while slow readers hold its answers. */
export const memoryRatio = (held: readonly HeldMemory[]): Ratio =>
  most(
    'slow readers: peak memory, MB',
    Math.max(...held.map(({ peakBytes }) => peakBytes)) / 2 ** 20,
    PROCESS_MB_MAX,
  );

/** Small answers beside two largest ones. */
export const downloadRatios = ({ beside, longestPauseMs }: Downloads): Ratio[] => [
  most('W2 beside two W4 downloads: p99, ms', beside.p99, 15),
  most('two W4 downloads: longest pause of the event loop, ms', longestPauseMs, 5),
];

/**
 * Compares a repeated calculation with the repeated W1, and a computed one with W1 of other days,
 * because answers to repeated requests are kept.
 */
function calculationRatios(results: Results): Ratio[] {
  const { service } = figuresOf(results);
  return [
    most('average of a month of 1 code: service ÷ W1', service('month') / service('W1'), 1.5),
    most(
      'average of another month or code: service ÷ W1, other days',
      service('monthother') / service('W1days'),
      1.5,
    ),
    most('5 averages × 12 months: service ÷ W1', service('anchors') / service('W1'), 30),
    most(
      '5 averages × 12 months of other codes: service ÷ W1, other days',
      service('anchorsother') / service('W1days'),
      30,
    ),
  ];
}

/** Every target of the design as a number of this run. */
export function ratiosOf(results: Results): Ratio[] {
  const { downloads, fresh, startSeconds, peakBytes } = results;
  return [
    ...smallRatios(results),
    ...sqlRatios(results),
    ...longRatios(results),
    ...calculationRatios(results),
    ...downloadRatios(downloads),
    most('answers older than the commit before them', fresh.stale, 0),
    most('commit to visible: p99 more than without, ms', fresh.afterCommitP99 - fresh.quietP99, 5),
    ...loadRatios(results),
    most('peak memory ÷ (PRICE_BOOK_BYTES + 150 MB)', peakBytes / MEMORY_BYTES, 1),
    most('start to first right answer, s', startSeconds, 5),
    ...formatRatios(results.formats),
    ...tableRatios(results.tables),
  ];
}

/** Cost with the bigger table against the smaller one. */
function tableRatios(tables: readonly TableCost[]): Ratio[] {
  return ['W2', 'W3'].flatMap((name) => {
    const sizes = tables.filter(({ workload }) => workload === name);
    const [small, big] = [sizes[0], sizes.at(-1)];
    if (!small || !big || small === big) return [];
    const times = Math.round(big.points / small.points);
    return [
      most(`${name}, ${times} × table: from the book`, big.bookMs / small.bookMs, 1.1),
      most(`${name}, ${times} × table: from SQL`, big.sqlMs / small.sqlMs, 1.5),
    ];
  });
}
