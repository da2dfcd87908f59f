import { Counter, Gauge, type Registry } from '@prometheus-io/client';
import type { Client } from '../db/client.ts';
import { instantOf } from '../db/instant.ts';
import type { LinkState } from '../db/link/link.ts';
import type { Limits } from '../limits/limits.ts';

/** The parts of a service that tell of themselves when they are asked. */
interface MetricSources {
  readonly client: Client;
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

interface Named {
  readonly name: string;
  readonly help: string;
}

/** A number that is read when the metrics are. */
function gauge(registry: Registry, named: Named, read: () => number): void {
  new Gauge({
    ...named,
    registers: [registry],
    collect() {
      this.set(read());
    },
  });
}

/** A number that only grows, counted elsewhere. */
function counter(registry: Registry, named: Named, read: () => number): void {
  new Counter({
    ...named,
    registers: [registry],
    collect() {
      this.reset();
      this.inc(read());
    },
  });
}

/** Numbers by one label; instances that tell the same thing are told once: the latest. */
function gauges(
  registry: Registry,
  label: string,
  named: Named,
  read: () => Iterable<readonly [label: string, value: number]>,
): void {
  new Gauge({
    ...named,
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
  gauge(registry, { name: 'prices_pool_connections', help: 'Connections of the pool' }, () => {
    return pool.totalCount;
  });
  gauge(registry, { name: 'prices_pool_idle', help: 'Connections that nobody uses' }, () => {
    return pool.idleCount;
  });
  gauge(registry, { name: 'prices_statements_running', help: 'Statements that run' }, () => {
    return reads.slots.taken;
  });
  gauge(
    registry,
    { name: 'prices_statements_waiting', help: 'Statements that wait for a connection' },
    () => reads.slots.waiting,
  );
  counter(
    registry,
    { name: 'prices_statement_retries_total', help: 'Statements that were tried once more' },
    () => reads.retries.count,
  );
  gauges(
    registry,
    'state',
    { name: 'prices_database_state', help: '1 for the state that the database is in' },
    () => STATES.map(([name, state]) => [name, state === link.state ? 1 : 0]),
  );
  counter(
    registry,
    { name: 'prices_database_outages_total', help: 'How often the database was away for longer' },
    () => link.outages,
  );
  counter(
    registry,
    { name: 'prices_looks_total', help: 'Looks at the database for its newest revision' },
    () => link.counts.looks,
  );
  counter(
    registry,
    { name: 'prices_looks_asked_total', help: 'Requests that shared these looks' },
    () => link.counts.asked,
  );
}

function freshness(registry: Registry, { health }: Client): void {
  gauges(
    registry,
    'market',
    {
      name: 'prices_latest_publication_timestamp_seconds',
      help: 'When the newest value of the market was published',
    },
    () => [...(health.known()?.publishedAt ?? [])].map(([slug, at]) => [slug, secondsOf(at)]),
  );
  gauges(
    registry,
    'scope',
    {
      name: 'prices_last_revision_timestamp_seconds',
      help: 'When a market, the reference data or a source of rates was last changed',
    },
    () =>
      [...(health.known()?.newest?.scopes ?? [])].map(([scope, { committedAt }]) => [
        scope,
        secondsOf(instantOf(committedAt)),
      ]),
  );
}

function load(registry: Registry, { limits, exchange }: MetricSources): void {
  gauge(registry, { name: 'prices_requests_running', help: 'Requests that are worked on' }, () => {
    return limits.gate.taken;
  });
  gauge(registry, { name: 'prices_requests_waiting', help: 'Requests at the gate' }, () => {
    return limits.gate.waiting;
  });
  gauge(
    registry,
    { name: 'prices_principals_running', help: 'Principals with a request under way' },
    () => limits.concurrency.size,
  );
  gauge(
    registry,
    { name: 'prices_rate_limited_names', help: 'Principals whose rate is being counted' },
    () => limits.principals,
  );
  counter(
    registry,
    {
      name: 'prices_limits_exchange_failures_total',
      help: 'Turns, one a second, that could not share what is counted for rate limits',
    },
    () => exchange?.failures ?? 0,
  );
}

function book(registry: Registry, { budget, counts }: BookTold): void {
  gauge(registry, { name: 'prices_book_bytes', help: 'Bytes that the price book holds' }, () => {
    return budget.state.bytes;
  });
  gauge(registry, { name: 'prices_book_limit_bytes', help: 'Bytes that it may hold' }, () => {
    return budget.state.limit;
  });
  const counted: readonly [string, string, () => number][] = [
    ['answers', 'Requests that were answered from the price book', () => counts.answers],
    [
      'repeats',
      'Of those, the ones put together before for who asked the same',
      () => counts.repeats,
    ],
    ['misses', 'Requests that it left to the database', () => counts.misses],
    ['builds', 'Markets that it read whole', () => counts.builds],
    ['refreshes', 'Markets of which it read what had changed', () => counts.refreshes],
    ['evictions', 'Things that it forgot for others', () => budget.state.evictions],
  ];
  for (const [name, help, read] of counted) {
    counter(registry, { name: `prices_book_${name}_total`, help }, read);
  }
}

/** Adds what the parts of the service tell of themselves. */
export function watchSources(registry: Registry, sources: MetricSources): void {
  const { client } = sources;
  if (sources.book) book(registry, sources.book);
  database(registry, client);
  freshness(registry, client);
  load(registry, sources);
}
