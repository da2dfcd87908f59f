import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { monotonicMs } from './bucket.ts';
import type { Limits, PrincipalCount } from './limits.ts';

const PERIOD_MS = 1_000;
/** Age at which a seen total is evicted: longer than an unwritten row stays in the table. */
const SEEN_MS = 30 * 60_000;

const WRITE = `
insert into rate_usage as usage (instance, name, taken)
  select $1, name, taken from unnest($2::text[], $3::bigint[]) as t (name, taken)
on conflict (instance, name) do update
  set taken = usage.taken + excluded.taken, updated_at = clock_timestamp()`;

/** Overlap of a read with the one before, for lagging clocks and transactions. */
const MARGIN_S = 15;
/** The first read takes every row, as the base of later differences. */
const ALL_S = 1e9;

const READ = `
select instance, name, taken, updated_at > clock_timestamp() - interval '${MARGIN_S} s' as is_new
  from rate_usage
  where instance <> $1
    and updated_at > clock_timestamp() - interval '1 second' * $2::double precision`;

/** Name of the row that an instance writes as a heartbeat, even without requests. */
const HEARTBEAT = '';
/** Rounds between two heartbeats: fewer seconds than `MARGIN_S`, for which one counts. */
const HEARTBEAT_ROUNDS = 5;

/** Stale rows belong to stopped instances and idle clients. */
const DELETE_STALE =
  "delete from rate_usage where updated_at < clock_timestamp() - interval '5 minutes'";

interface UsageRow {
  readonly instance: string;
  readonly name: string;
  readonly taken: string;
  readonly is_new: boolean;
}

/** Prefixes of the two kinds of names in one column. */
const PRINCIPAL = 'p ';
const NETWORK = 'n ';

/** Name of a principal in the table: its rate comes first, because other instances need it. */
const encodeCount = ({ perMinute, name }: PrincipalCount): string =>
  `${PRINCIPAL}${perMinute} ${name}`;

/** Decodes a name of the table. A missing rate becomes NaN, and nothing is counted by it. */
function decodeCount(text: string, count: number): PrincipalCount {
  const [perMinute = '', ...name] = text.slice(PRINCIPAL.length).split(' ');
  return { name: name.join(' '), count, perMinute: Number(perMinute) };
}

/**
 * Exchanges counts with other instances once a second, through an unlogged table: rate limits then
 * hold for all instances together, within about one second of traffic. No request waits for it.
 * While it fails, each instance enforces its limits alone.
 */
export class Exchange {
  readonly #instance = randomUUID();
  readonly #pool: pg.Pool;
  readonly #limits: Limits;
  readonly #onChange: (error: Error | null) => void;
  /** Last total of each row of another instance. */
  readonly #seen = new Map<string, { readonly total: number; readonly atMs: number }>();
  readonly #timer: NodeJS.Timeout;
  #running: Promise<void> | null = null;
  /** Time of the last read; null before the first. */
  #readMs: number | null = null;
  #hasFailed = false;
  #rounds = 0;
  #failures = 0;

  /** @param onChange called with the first error of an outage, and with null after it */
  constructor(pool: pg.Pool, limits: Limits, onChange: (error: Error | null) => void) {
    this.#pool = pool;
    this.#limits = limits;
    this.#onChange = onChange;
    this.#timer = setInterval(() => this.#start(), PERIOD_MS);
    this.#timer.unref();
    // At once, so that other instances are known before the first requests.
    this.#start();
  }

  /** Number of failed rounds. */
  get failures(): number {
    return this.#failures;
  }

  /** Stops, and writes the last counts. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
    await this.#write().catch(() => {});
  }

  #start(): void {
    this.#running ??= this.#exchange().finally(() => {
      this.#running = null;
    });
  }

  async #exchange(): Promise<void> {
    try {
      await this.#write();
      await this.#read();
      this.#rounds += 1;
      if (this.#rounds % 60 === 0) await this.#deleteStale();
      if (this.#hasFailed) this.#onChange(null);
      this.#hasFailed = false;
    } catch (error) {
      this.#failures += 1;
      if (!this.#hasFailed) this.#onChange(error as Error);
      this.#hasFailed = true;
    }
    this.#limits.sweep(monotonicMs());
  }

  async #write(): Promise<void> {
    const { principals, failures } = this.#limits.drain();
    const rows = [
      ...principals.map((each) => [encodeCount(each), each.count] as const),
      ...[...failures].map(([name, taken]) => [NETWORK + name, taken] as const),
    ];
    if (this.#rounds % HEARTBEAT_ROUNDS === 0) rows.push([HEARTBEAT, 0]);
    if (rows.length === 0) return;
    const names = rows.map(([name]) => name);
    const taken = rows.map(([, count]) => count);
    await this.#pool.query(WRITE, [this.#instance, names, taken]);
  }

  async #read(): Promise<void> {
    const nowMs = monotonicMs();
    const sinceMs = this.#readMs;
    const seconds = sinceMs === null ? ALL_S : MARGIN_S + Math.max(0, nowMs - sinceMs) / 1000;
    const { rows } = await this.#pool.query<UsageRow>(READ, [this.#instance, seconds]);
    this.#limits.setPeers(rows.filter(({ name, is_new }) => name === HEARTBEAT && is_new).length);
    for (const row of rows) this.#count(row, sinceMs, nowMs);
    this.#readMs = nowMs;
  }

  #count({ instance, name, taken }: UsageRow, sinceMs: number | null, nowMs: number): void {
    const key = `${instance} ${name}`;
    const total = Number(taken);
    const before = this.#seen.get(key)?.total ?? 0;
    this.#seen.set(key, { total, atMs: nowMs });
    // Counts older than the first read are ignored. A total that shrank belongs to a new row.
    const more = total >= before ? total - before : total;
    if (sinceMs === null || more === 0) return;
    if (name.startsWith(PRINCIPAL)) this.#limits.addPeerPrincipal(decodeCount(name, more), sinceMs);
    else this.#limits.addPeerFailures(name.slice(NETWORK.length), more, sinceMs);
  }

  async #deleteStale(): Promise<void> {
    await this.#pool.query(DELETE_STALE);
    const oldest = monotonicMs() - SEEN_MS;
    for (const [key, { atMs }] of this.#seen) if (atMs < oldest) this.#seen.delete(key);
  }
}
