import pg from 'pg';
import { isServerError } from '../failures.ts';
import { commitIdOf, numberOf } from '../revisions.ts';
import { answered, destroy } from './silence.ts';

/**
 * Where the database is: one of several servers that hold it, in the order in which they are to be
 * tried. All connections go to one of them at a time, since another may not have its newest data.
 */
export class Servers {
  readonly #all: readonly string[];
  #current: string;

  /** @param urls an address for each server; at least one */
  constructor(urls: readonly string[]) {
    const [first] = urls;
    if (first === undefined) throw new Error('a database has at least one server');
    this.#all = urls;
    this.#current = first;
  }

  /** The address of the server in use. */
  get current(): string {
    return this.#current;
  }

  /** The addresses of the others. */
  get others(): readonly string[] {
    return this.#all.filter((url) => url !== this.#current);
  }

  /** Uses this server from now on. */
  use(url: string): void {
    this.#current = url;
  }
}

/** The state of a server in relation to the primary. */
export interface Standing {
  /** True for a standby, which only reads. */
  readonly isStandby: boolean;
  /** Age of the oldest missing data, in milliseconds; 0 if nothing is known to be missing. */
  readonly behindMs: number;
  /** All that it had received at this moment of `performance.now()` is shown, or more. */
  readonly asOfMs: number;
}

/** A place in the log that a standby had received at a moment, or none. */
interface Mark {
  readonly received: string | null;
  readonly atMs: number;
  /** The moment up to which it was known then to show everything. */
  readonly asOfMs: number;
}

interface Row {
  readonly isStandby: boolean;
  /** True if it receives the log from another server. */
  readonly isFed: boolean;
  readonly received: string | null;
  /** True if it shows everything it had received at the last mark. */
  readonly isThere: boolean | null;
  /** True if it shows all that it has received. */
  readonly isLevel: boolean | null;
}

const QUESTION = `select pg_is_in_recovery() as "isStandby",
  exists (select from pg_stat_wal_receiver) as "isFed",
  pg_last_wal_receive_lsn()::text as "received",
  pg_last_wal_replay_lsn() >= $1::pg_lsn as "isThere",
  pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn() as "isLevel"`;

/**
 * The states of servers, from one check to the next. The time of the last transaction is no
 * measure: it grows old while nothing is written, and during a long transaction.
 */
export class Standings {
  readonly #marks = new Map<string, Mark>();

  /**
   * A server is used from now on: what it lacks counts from here. Nobody looked at it meanwhile,
   * and one whose primary has just ended was level until then, for all that is known.
   */
  begin(url: string): void {
    const mark = this.#marks.get(url);
    if (mark) this.#marks.set(url, { ...mark, asOfMs: performance.now() });
  }

  /** Asks a server. Throws what it throws. */
  async of(url: string, client: pg.Client): Promise<Standing> {
    const mark = this.#marks.get(url);
    const askedMs = performance.now();
    const { rows } = await client.query<Row>(QUESTION, [mark?.received ?? null]);
    const [row] = rows;
    const nowMs = performance.now();
    if (!row?.isStandby) {
      this.#marks.delete(url);
      return { isStandby: false, behindMs: 0, asOfMs: askedMs };
    }
    const { isFed, isThere, isLevel, received } = row;
    if (mark !== undefined && !(isFed && isThere !== false)) {
      return { isStandby: true, behindMs: nowMs - mark.atMs, asOfMs: mark.asOfMs };
    }
    // A first look knows of nothing before.
    const asOfMs = isFed && isLevel ? askedMs : (mark?.atMs ?? nowMs);
    this.#marks.set(url, { received, atMs: nowMs, asOfMs });
    return { isStandby: true, behindMs: 0, asOfMs };
  }
}

/** The epoch of a server, and a revision that it has. */
export interface Extent {
  readonly epoch: string;
  readonly revision: string;
}

/** Another server that answers. */
export interface Candidate extends Standing {
  /** True if it lacks a revision that another server has reported. */
  readonly isLacking: boolean;
}

const LACKS = `select epoch = $1 and $2::bigint > 0
    and not exists (select from revision where number = $2 and commit_id = $3) as "isLacking"
  from service`;

/**
 * True if a server lacks the commit that another one has reported. A server without the tables
 * lacks it; a server of another epoch does not.
 */
export async function lacks(client: pg.ClientBase, told: Extent | null): Promise<boolean> {
  if (told === null) return false;
  const { epoch, revision } = told;
  const values = [epoch, numberOf(revision), commitIdOf(revision)];
  try {
    const { rows } = await client.query<{ isLacking: boolean }>(LACKS, values);
    return rows[0]?.isLacking ?? true;
  } catch (error) {
    if (isServerError(error)) return true;
    throw error;
  }
}

async function ask(
  client: pg.Client,
  url: string,
  standings: Standings,
  told: Extent | null,
): Promise<Candidate> {
  await client.connect();
  const standing = await standings.of(url, client);
  return { ...standing, isLacking: await lacks(client, told) };
}

/** Looks at another server; null when it does not answer in time, or lets us not in. */
export async function candidateAt(
  url: string,
  connection: pg.ClientConfig,
  standings: Standings,
  told: Extent | null,
  silenceMs: number,
): Promise<Candidate | null> {
  const client = new pg.Client(connection);
  client.on('error', () => {});
  try {
    return await answered(ask(client, url, standings, told), silenceMs);
  } catch {
    return null;
  } finally {
    destroy(client);
  }
}
