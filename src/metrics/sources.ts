import { setTimeout as pause } from 'node:timers/promises';
import { Counter, Gauge, type Registry } from '@prometheus-io/client';
import type { Client } from '../db/client.ts';
import { instantOf } from '../db/instant.ts';
import type { LinkState } from '../db/link/link.ts';
import type { MinRevisionCheck } from '../db/min-revision.ts';
import { numberOf } from '../db/revisions.ts';
import type { Limits } from '../limits/limits.ts';

/** The parts of the service from which metrics are read. */
interface MetricSources {
  readonly client: Client;
  readonly minRevision: MinRevisionCheck;
  readonly limits: Limits;
  /** The price book and the kept answers; both null if they are disabled. */
  readonly book: BookStatus | null;
  readonly answers: AnswersStatus | null;
  readonly watch: WatchStatus;
  readonly webhooks: WebhooksStatus;
}

/** Messages to receivers of webhooks. */
interface WebhooksStatus {
  refresh(): Promise<void>;
  status(): {
    readonly pending: number;
    readonly oldestSeconds: number;
    readonly attempts: Readonly<Record<string, number>>;
  };
}

/** Late prices, newest days, and loads. */
interface WatchStatus {
  refresh(): Promise<void>;
  late(): readonly {
    readonly market: string;
    readonly by: string;
    readonly prices: number;
  }[];
  observations(): readonly {
    readonly market: string;
    readonly frequency: string;
    readonly day: string;
  }[];
  loads(): readonly {
    readonly format: string;
    readonly outcome: string;
    readonly batches: number;
  }[];
}

/** The counts of the price book. */
interface BookStatus {
  readonly state: Readonly<Record<'bytes' | 'limit' | 'evictions', number>>;
  readonly counts: Readonly<Record<'answers' | 'misses' | 'builds' | 'refreshes', number>>;
}

/** The counts of kept answers. */
interface AnswersStatus {
  readonly state: Readonly<Record<'bytes' | 'limit' | 'repeats' | 'evictions', number>>;
}

/** A metric without labels: its name without `prices_`, its help text, and its reader. */
type NumericMetric = readonly [name: string, help: string, read: () => number];

/** Adds gauges. */
function gauges(registry: Registry, ...all: readonly NumericMetric[]): void {
  for (const [name, help, read] of all) {
    new Gauge({
      name: `prices_${name}`,
      help,
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  }
}

/** Adds counters that are counted elsewhere. */
function counters(registry: Registry, ...all: readonly NumericMetric[]): void {
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

/** Adds a gauge with one label. */
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
    collect() {
      this.reset();
      for (const [each, value] of read()) this.set({ [label]: each }, value);
    },
  });
}

/** The states of the link by their released metric labels. */
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
    ['pool_idle', 'Idle connections of the pool', () => pool.idleCount],
    ['statements_running', 'Running statements', () => reads.slots.inUse],
    ['statements_waiting', 'Statements that wait for a connection', () => reads.slots.waiting],
  );
  labelled(registry, ['database_state', '1 for the current state of the database', 'state'], () =>
    STATES.map(([name, state]) => [name, state === link.state ? 1 : 0]),
  );
  counters(
    registry,
    ['statement_retries', 'Retries of statements', () => reads.retries.count],
    ['database_outages', 'Outages during which requests failed', () => link.counts.outages],
    ['revision_checks', 'Revision checks', () => link.counts.checks],
    [
      'revision_check_requests',
      'Requests that shared the revision checks',
      () => link.counts.requests,
    ],
  );
}

/** Revision and lag of this node, to compare nodes that read standbys. */
function replication(registry: Registry, { client: { link }, minRevision }: MetricSources): void {
  const { counts } = minRevision;
  gauges(
    registry,
    [
      'revision_number',
      'Number of the newest revision that was read',
      () => Number(numberOf(link.lastRead?.revision ?? '0')),
    ],
    ['standby', '1 if the server in use is a standby', () => (link.isStandby ? 1 : 0)],
    [
      'replication_lag_seconds',
      'Upper bound of the lag of the server in use behind the primary; 0 for a primary',
      () => link.lagMs / 1_000,
    ],
    [
      'behind',
      '1 if /ready answers 503 because the node is behind',
      () => (minRevision.behindMs() === null ? 0 : 1),
    ],
  );
  labelled(
    registry,
    ['revision_highest_number', 'Greatest number of a revision that was read in an epoch', 'epoch'],
    () => {
      const { highest } = link;
      return highest === null ? [] : [[highest.epoch, Number(numberOf(highest.revision))]];
    },
  );
  counters(
    registry,
    [
      'history_changes',
      'Lost revisions and renewals of the epoch that the node has found',
      () => (link.lastRead?.history ?? 1) - 1,
    ],
    ['min_revision_waits', 'Requests that waited for their x-min-revision', () => counts.waits],
    [
      'min_revision_refusals',
      'Requests that were rejected because their x-min-revision was missing for too long',
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
      'Publication time of the newest value of the market',
      'market',
    ],
    () => [...(health.cached()?.publishedAt ?? [])].map(([slug, at]) => [slug, secondsOf(at)]),
  );
  labelled(
    registry,
    [
      'last_revision_timestamp_seconds',
      'Time of the last change of a market, the reference data or a source of rates',
      'scope',
    ],
    () =>
      [...(health.cached()?.newest?.scopes ?? [])].map(([scope, { committedAt }]) => [
        scope,
        secondsOf(instantOf(committedAt)),
      ]),
  );
}

/** Longest wait of a scrape for newer prices. */
const REFRESH_MS_MAX = 1_000;

const daySeconds = (day: string): number => secondsOf(`${day}T00:00:00Z`);

/** Prices that are late, the newest days, and the loads of the ledger. */
function lateness(registry: Registry, { watch, client: { health } }: MetricSources): void {
  new Gauge({
    name: 'prices_late',
    help: 'Prices that are late: by their calendar, or without one by their frequency',
    labelNames: ['market', 'by'],
    registers: [registry],
    async collect() {
      // While the database is away, the last known prices are judged.
      await Promise.race([watch.refresh(), pause(REFRESH_MS_MAX, undefined, { ref: false })]);
      this.reset();
      for (const { market, by, prices } of watch.late()) this.set({ market, by }, prices);
    },
  });
  new Gauge({
    name: 'prices_latest_observation_timestamp_seconds',
    help: 'Newest day with a value, at 00:00 UTC, of the prices of a market with one frequency',
    labelNames: ['market', 'frequency'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { market, frequency, day } of watch.observations()) {
        this.set({ market, frequency }, daySeconds(day));
      }
    },
  });
  new Counter({
    name: 'prices_loads_total',
    help: 'Batches of the ledger, by format and outcome: applied, unchanged, refused',
    labelNames: ['format', 'outcome'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { format, outcome, batches } of watch.loads()) {
        this.inc({ format, outcome }, batches);
      }
    },
  });
  labelled(
    registry,
    [
      'latest_rate_timestamp_seconds',
      'Newest day with a rate of the source, at 00:00 UTC',
      'source',
    ],
    () => [...(health.cached()?.rateDays ?? [])].map(([slug, day]) => [slug, daySeconds(day)]),
  );
}

/** Messages to receivers of webhooks, which another process may send. */
function doorbells(registry: Registry, webhooks: WebhooksStatus): void {
  const read = async () => {
    await Promise.race([webhooks.refresh(), pause(REFRESH_MS_MAX, undefined, { ref: false })]);
    return webhooks.status();
  };
  new Counter({
    name: 'prices_webhook_attempts_total',
    help: 'Attempts to send messages of webhooks, by outcome, of all processes',
    labelNames: ['outcome'],
    registers: [registry],
    async collect() {
      const { attempts: all } = await read();
      this.reset();
      for (const [outcome, attempts] of Object.entries(all)) {
        this.inc({ outcome }, attempts);
      }
    },
  });
  new Gauge({
    name: 'prices_webhook_pending',
    help: 'Messages of webhooks that wait',
    registers: [registry],
    async collect() {
      this.set((await read()).pending);
    },
  });
  new Gauge({
    name: 'prices_webhook_oldest_pending_seconds',
    help: 'Age of the oldest message that waits, or of a commit without its messages',
    registers: [registry],
    async collect() {
      this.set((await read()).oldestSeconds);
    },
  });
}

function load(registry: Registry, { limits }: MetricSources): void {
  gauges(
    registry,
    ['requests_running', 'Admitted requests', () => limits.gate.inUse],
    ['requests_waiting', 'Requests that wait for admission', () => limits.gate.waiting],
    ['principals_running', 'Principals with a running request', () => limits.concurrency.size],
    ['rate_limited_names', 'Principals with a rate bucket', () => limits.principals],
  );
}

function memory(registry: Registry, book: BookStatus, answers: AnswersStatus): void {
  const { counts } = book;
  const both = (name: 'bytes' | 'limit' | 'evictions') => book.state[name] + answers.state[name];
  gauges(
    registry,
    ['book_bytes', 'Memory used by the price book and kept answers', () => both('bytes')],
    ['book_limit_bytes', 'Memory budget of both', () => both('limit')],
  );
  counters(
    registry,
    ['book_answers', 'Requests answered from memory', () => counts.answers + answers.state.repeats],
    ['book_repeats', 'Requests answered with a kept answer', () => answers.state.repeats],
    ['book_misses', 'Requests answered by the database instead', () => counts.misses],
    ['book_builds', 'Editions built from a whole market', () => counts.builds],
    ['book_refreshes', 'Editions refreshed with the changes of a market', () => counts.refreshes],
    ['book_evictions', 'Entries evicted from memory', () => both('evictions')],
  );
}

/** Adds the metrics of the parts of the service. */
export function watchSources(registry: Registry, sources: MetricSources): void {
  const { client, answers } = sources;
  if (sources.book && answers) memory(registry, sources.book, answers);
  database(registry, client);
  replication(registry, sources);
  freshness(registry, client);
  lateness(registry, sources);
  load(registry, sources);
  doorbells(registry, sources.webhooks);
}
