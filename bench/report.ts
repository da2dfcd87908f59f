import type { FormCost } from './formats.ts';
import { costOf, type Sample, samplesOf } from './measure.ts';
import type { HeldMemory } from './memory.ts';
import { besideOf, type Ratio, ratiosOf } from './ratios.ts';
import type { Results } from './results.ts';
import { pointsOf, WORKLOADS } from './workloads.ts';

const round = (value: number, digits = 3): string =>
  Number.isFinite(value) ? String(Number(value.toPrecision(digits))) : '–';

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map((_, at) => (at === 0 ? '---' : '--:')), ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');

const namesOf = (samples: readonly Sample[]): string[] => [
  ...new Set(samples.map(({ contender }) => contender)),
];

/** CPU of process and PostgreSQL for one request over one connection, best round of each. */
function costTable(samples: readonly Sample[]): string {
  const names = namesOf(samples);
  const rows = WORKLOADS.map(({ name, title }) => {
    const costs = names.map((contender) => costOf(samplesOf(samples, contender, name, 1)));
    return [`${name}: ${title}`, ...costs.map((cost) => round(cost))];
  });
  return table(['', ...names], rows);
}

/** Points per CPU second over one connection, best round of each. */
function pointsTable(samples: readonly Sample[]): string {
  const names = namesOf(samples);
  const rows = WORKLOADS.filter(({ range }) => range !== null).map((workload) => {
    const points = pointsOf(workload);
    const rates = names.map((name) => {
      const ms = costOf(samplesOf(samples, name, workload.name, 1));
      return Number.isFinite(ms) ? Math.round((1000 * points) / ms).toLocaleString('en') : '–';
    });
    return [`${workload.name}, ${points.toLocaleString('en')} points`, ...rates];
  });
  return table(['', ...names], rows);
}

/** Differences between the work of each peer and of the service for a request. */
const DIFFERENCES = `- **raw** writes a prepared buffer: no routing, no credential, no limits,
  no parsing, no filter, no query.
- **hello** (Fastify) parses the JSON body and answers twelve bytes; no credential, no database.
- **stack** is Fastify with @fastify/helmet, @fastify/rate-limit, @fastify/under-pressure, a key
  that is compared in memory, and pino; it sends prepared bytes without a query.
- **bare SQL** (pgbench) runs one prepared statement for the points: no HTTP, records or JSON.
- **naive** queries PostgreSQL by Kysely, makes an object of each row and one string of all. It has
  no credential, no limits and almost no check of the filters; numbers are rounded to doubles.
- **PostGraphile** and **Platformatic** parse and plan GraphQL, query PostgreSQL, and make objects
  and strings; no credential, no limits and no revisions here. Platformatic has no path from a
  price to its points, and sends them flat, without the records.
- **service, SQL** is this service with \`PRICE_BOOK_BYTES=0\`: it reads PostgreSQL each time.
- All requests of a workload are equal, except in W1days, W2days, W3days and latest. **The service**
  keeps the answer to a repeated request, up to 32 MB, so it does not validate, filter, select or
  write again. The four workloads with other days in each request do not profit from that.
  PostgreSQL has every page in memory as well.
- The service checks the key, its scope and its limits, runs a revision check in each turn of the
  event loop, and names the revision of its answer.
- Slow contenders are measured over many connections once, at the end, with one request over each
  connection. These are naive, the peers and the service from SQL with W3 to W5 over 16 and 64, and
  all with W4 and CSV over 64. A contender that has not answered all requests within a minute is
  listed below, and not measured again. The service from SQL has longer deadlines here than by
  default, so that it rejects no request.
- The service, raw and hello have three bursts in each round over 1 and 16 connections, all others
  one: the most closely compared contenders must not differ by chance. The best of fifteen bursts
  is a little better than the best of five, so ratios to all others favour the service.
- For figures that are measured once in a round the best round counts, for stalled readers the
  worst, and for stale answers all rounds together. The load and the bigger table are made once.`;

/** The failures as a list; empty for none. */
const failuresOf = ({ failures }: Results): string[] =>
  failures.length === 0
    ? []
    : [
        '### Not answered',
        failures
          .map(
            ({ contender, workload, connections, why }) =>
              `- **${contender}**, ${workload} over ${connections} connections: ${why}`,
          )
          .join('\n'),
      ];

/** Requests a second, p50 and p99 by number of connections. */
function rateTable(samples: readonly Sample[]): string {
  const groups = new Map<string, Sample[]>();
  for (const each of samples) {
    const key = [each.workload, each.connections, each.contender].join('|');
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  const rows = [...groups.values()].map((group) => {
    const [first] = group as [Sample];
    const best = group.reduce((one, other) => (other.perSecond > one.perSecond ? other : one));
    const costs = group.map(({ nodeMs, pgMs }) => ({ all: nodeMs + pgMs, pgMs }));
    const cheapest = costs.reduce((one, other) => (other.all < one.all ? other : one));
    const { perSecond, p50, p99, firstMs } = best;
    const figures = [cheapest.all, cheapest.pgMs, perSecond, p50, p99, firstMs];
    const cells = figures.map((value) => round(value));
    const memory = `${Math.round(Math.max(...group.map(({ peakBytes }) => peakBytes)) / 2 ** 20)}`;
    return [first.workload, String(first.connections), first.contender, ...cells, memory];
  });
  const head = [
    'workload',
    'connections',
    'who',
    'CPU ms',
    'of it PostgreSQL',
    'requests/s',
    'p50 ms',
    'p99 ms',
    'first byte ms',
    'peak MB of the run',
  ];
  return table(head, rows);
}

/** A million points in each format, best round of each. */
function formatTable(forms: readonly FormCost[]): string {
  const json = forms.find(({ name }) => name === 'json')?.bytes ?? Number.NaN;
  const rows = forms.map(({ name, bytes, coldFirstMs, firstMs, lastMs, cpuMs, moreBytes }) => [
    name,
    (bytes / 1e6).toFixed(1),
    round(bytes / json),
    ...[coldFirstMs, firstMs, lastMs, cpuMs, moreBytes / 2 ** 20].map((each) => each.toFixed(0)),
  ]);
  const head = [
    'a million points as',
    'MB',
    '÷ JSON',
    'first byte of the first answer, ms',
    'first byte, ms',
    'last byte, ms',
    'CPU, ms',
    'MB more memory',
  ];
  return table(head, rows);
}

function memoryTable(held: readonly HeldMemory[]): string {
  const rows = held.map(({ name, answers, refused, ...bytes }) => [
    name,
    ...[answers, refused].map(String),
    ...[bytes.beforeBytes, bytes.heldBytes, bytes.peakBytes].map((each) =>
      (each / 2 ** 20).toFixed(0),
    ),
  ]);
  const head = [
    'slow readers of',
    'answers',
    'refused',
    'MB before',
    'MB while held',
    'MB at the peak',
  ];
  return table(head, rows);
}

/** The report of one part of the benchmark: its targets, and its figures if there are more. */
export function partReport(
  machine: string,
  ratios: readonly Ratio[],
  forms: readonly FormCost[],
  held: readonly HeldMemory[] = [],
): string {
  const rows = ratios.map(({ what, value, target, share, isMet }) => [
    what,
    round(value),
    target,
    round(share),
    isMet ? 'yes' : 'no',
  ]);
  const targets = table(['', 'measured', 'target', 'measured ÷ target', 'met'], rows);
  const tables = [
    ...(forms.length > 0 ? [formatTable(forms)] : []),
    ...(held.length > 0 ? [memoryTable(held)] : []),
  ];
  return [machine, targets, ...tables].join('\n\n');
}

/** The whole report, as Markdown. */
export function reportOf(results: Results): string {
  const ratios = ratiosOf(results).map(({ what, value, target, isMet }) => [
    what,
    round(value),
    target,
    isMet ? 'yes' : 'no',
    besideOf(what),
  ]);
  const sizes = results.sizes.map(({ points, bytes, bookMs, sqlMs }) => [
    points.toLocaleString('en'),
    (bytes / 1e6).toPrecision(3),
    round(bookMs),
    round(sqlMs),
  ]);
  const tables = results.tables.map(({ points, workload, bookMs, sqlMs }) => [
    points.toLocaleString('en'),
    workload,
    round(bookMs),
    round(sqlMs),
  ]);
  return [
    results.machine,
    '### Targets',
    table(['', 'measured', 'target', 'met', 'the other'], ratios),
    ...(results.bare
      ? [`Bare SQL of W2, 16 connections: ${round(results.bare.perSecond)} a second.`]
      : []),
    '### CPU of one request, milliseconds',
    costTable(results.samples),
    '### Points for a second of CPU',
    pointsTable(results.samples),
    `A 304 to W3 by GET: ${round(results.notModifiedMs)} ms of CPU, process and PostgreSQL.`,
    '### What is compared',
    DIFFERENCES,
    '### Rates, latencies and memory, best round',
    rateTable(results.samples),
    ...failuresOf(results),
    '### Growth with the answer',
    table(['points', 'MB', 'book, ms', 'SQL, ms'], sizes),
    '### Growth with the table',
    table(['points in the table', '', 'book, ms', 'SQL, ms'], tables),
    ...(results.formats.length > 0 ? ['### Formats', formatTable(results.formats)] : []),
  ].join('\n\n');
}
