import { Counter, Gauge, type Registry } from '@prometheus-io/client';
import type { Client } from '../db/client.ts';
import { instantOf } from '../db/instant.ts';
import type { LinkState } from '../db/link/link.ts';
import type { MinRevisionCheck } from '../db/min-revision.ts';
import { numberOf } from '../db/revisions.ts';
import type { Limits } from '../limits/limits.ts';

/** The parts of a service that tell of themselves when they are asked. */
interface MetricSources {
  readonly client: Client;
  readonly minRevision: MinRevisionCheck;
  readonly limits: Limits;
  /** The exchange of counts with other instances; null where there is none. */
  readonly exchange: { readonly failures: number } | null;
  /** The price book; null where none is kept. */
  readonly book: BookTold | null;
}

/** What a price book tells of itself. */
interface BookTold {
  readonly budget: { readonly state: Readonly<Record<'bytes' | 'limit' | 'evictions', number>> };
  readonly counts: Readonly<
    Record<'answers' | 'repeats' | 'misses' | 'builds' | 'refreshes', number>
  >;
}

/** One number: its name without `prices_`, what it says, and how it is read. */
type Told = readonly [name: string, help: string, read: () => number];

/** Gauges of which the metrics of all workers have the sum. */
const gauges = (registry: Registry, ...all: readonly Told[]): void =>
  addGauges(registry, 'sum', all);

/** Gauges of which the metrics of all workers have the greatest. */
const greatest = (registry: Registry, ...all: readonly Told[]): void =>
  addGauges(registry, 'max', all);

function addGauges(registry: Registry, aggregator: 'sum' | 'max', all: readonly Told[]): void {
  for (const [name, help, read] of all) {
    new Gauge({
      name: `prices_${name}`,
      help,
      registers: [registry],
      aggregator,
      collect() {
        this.set(read());
      },
    });
  }
}

/** Numbers that only grow, counted elsewhere. */
function counters(registry: Registry, ...all: readonly Told[]): void {
  for (const [name, help, read] of all) {
    new Counter({
      name: `prices_${name}_total`,
      help,
      registers: [registry],
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  }
}

/** Numbers by one label; instances that report the same thing are counted once: the latest. */
function labelled(
  registry: Registry,
  [name, help, label]: readonly [name: string, help: string, label: string],
  read: () => Iterable<readonly [label: string, value: number]>,
): void {
  new Gauge({
    name: `prices_${name}`,
    help,
    labelNames: [label],
    registers: [registry],
    aggregator: 'max',
    collect() {
      this.reset();
      for (const [each, value] of read()) this.set({ [label]: each }, value);
    },
  });
}

/** The states of the link by the names that dashboards and alerts know. */
const STATES: readonly (readonly [name: string, state: LinkState])[] = [
  ['closed', 'up'],
  ['lost', 'away'],
  ['open', 'down'],
];

const secondsOf = (instant: string): number => Date.parse(instant) / 1000;

function database(registry: Registry, { pool, reads, link }: Client): void {
  gauges(
    registry,
    ['pool_connections', 'Connections of the pool', () => pool.totalCount],
    ['pool_idle', 'Connections that nobody uses', () => pool.idleCount],
    ['statements_running', 'Statements that run', () => reads.slots.inUse],
    ['statements_waiting', 'Statements that wait for a connection', () => reads.slots.waiting],
  );
  labelled(registry, ['database_state', '1 for the state that the database is in', 'state'], () =>
    STATES.map(([name, state]) => [name, state === link.state ? 1 : 0]),
  );
  counters(
    registry,
    ['statement_retries', 'Statements that were tried once more', () => reads.retries.count],
    ['database_outages', 'How often the database was away for longer', () => link.outages],
    ['looks', 'Looks at the database for its newest revision', () => link.counts.checks],
    ['looks_asked', 'Requests that shared these looks', () => link.counts.requests],
  );
}

/** Position of this node among nodes that read standbys. */
function replication(registry: Registry, { client: { link }, minRevision }: MetricSources): void {
  const { counts } = minRevision;
  greatest(
    registry,
    [
      'revision_number',
      'Number of the newest revision that was read',
      () => Number(numberOf(link.lastRead?.revision ?? '0')),
    ],
    ['standby', '1 if the server in use is a standby', () => (link.isStandby ? 1 : 0)],
    [
      'replication_lag_seconds',
      'How long the server in use may have lacked committed data; 0 for a primary',
      () => link.lagMs / 1_000,
    ],
    [
      'behind',
      '1 if /ready answers 503 because the node is behind',
      () => (minRevision.behindMs() === null ? 0 : 1),
    ],
  );
  counters(
    registry,
    ['min_revision_waits', 'Requests that waited for their x-min-revision', () => counts.waits],
    [
      'min_revision_refusals',
      'Requests that were refused because it did not come',
      () => counts.refusals,
    ],
    [
      'min_revision_unknown',
      'Requests with an x-min-revision of another history',
      () => counts.others,
    ],
  );
}

function freshness(registry: Registry, { health }: Client): void {
  labelled(
    registry,
    [
      'latest_publication_timestamp_seconds',
      'When the newest value of the market was published',
      'market',
    ],
    () => [...(health.cached()?.publishedAt ?? [])].map(([slug, at]) => [slug, secondsOf(at)]),
  );
  labelled(
    registry,
    [
      'last_revision_timestamp_seconds',
      'When a market, the reference data or a source of rates was last changed',
      'scope',
    ],
    () =>
      [...(health.cached()?.newest?.scopes ?? [])].map(([scope, { committedAt }]) => [
        scope,
        secondsOf(instantOf(committedAt)),
      ]),
  );
}

function load(registry: Registry, { limits, exchange }: MetricSources): void {
  gauges(
    registry,
    ['requests_running', 'Requests that are worked on', () => limits.gate.inUse],
    ['requests_waiting', 'Requests at the gate', () => limits.gate.waiting],
    ['principals_running', 'Principals with a request under way', () => limits.concurrency.size],
    ['rate_limited_names', 'Principals whose rate is being counted', () => limits.principals],
  );
  counters(registry, [
    'limits_exchange_failures',
    'Turns, one a second, that could not share what is counted for rate limits',
    () => exchange?.failures ?? 0,
  ]);
}

function book(registry: Registry, { budget, counts }: BookTold): void {
  gauges(
    registry,
    ['book_bytes', 'Bytes that the price book holds', () => budget.state.bytes],
    ['book_limit_bytes', 'Bytes that it may hold', () => budget.state.limit],
  );
  counters(
    registry,
    ['book_answers', 'Requests that were answered from the price book', () => counts.answers],
    [
      'book_repeats',
      'Of those, the ones put together before for who asked the same',
      () => counts.repeats,
    ],
    ['book_misses', 'Requests that it left to the database', () => counts.misses],
    ['book_builds', 'Markets that it read whole', () => counts.builds],
    ['book_refreshes', 'Markets of which it read what had changed', () => counts.refreshes],
    ['book_evictions', 'Things that it forgot for others', () => budget.state.evictions],
  );
}

/** Adds what the parts of the service tell of themselves. */
export function watchSources(registry: Registry, sources: MetricSources): void {
  const { client } = sources;
  if (sources.book) book(registry, sources.book);
  database(registry, client);
  replication(registry, sources);
  freshness(registry, client);
  load(registry, sources);
}
