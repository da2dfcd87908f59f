import type pg from 'pg';
import { instantOf } from './instant.ts';
import { commitIdOf, type DataRevision, isAfter, numberOf } from './revisions.ts';

/** The newest revision of a scope: a market, `reference`, or `fx:<source>`. */
interface ScopeRevision {
  readonly revision: string;
  /** Commit time, as PostgreSQL prints it. */
  readonly committedAt: string;
}

/** Result of a revision check. An unchanged database returns the same object. */
export interface NewestRevision {
  readonly epoch: string;
  /** Differs after every change of an API key. */
  readonly keysVersion: string;
  /** The newest revision of all scopes; "0" before the first. */
  readonly revision: string;
  readonly scopes: ReadonlyMap<string, ScopeRevision>;
  /** Increases with each check that found changes: the later of two results is the greater. */
  readonly order: number;
  /** Increases when a known revision was lost, or when the epoch changed. */
  readonly history: number;
}

/** One row: the epoch, the version of the API keys, and the newest revision. */
type CheckRow = readonly [epoch: string, keysVersion: string, revision: string];

const CHECK = {
  name: 'revision_check',
  text: `select epoch, keys_version || '.' || keys_change_id,
    coalesce((select concat_ws('.', number, commit_id) from revision
      order by number desc limit 1), '0') from service`,
};

/**
 * The scopes touched by the revisions after $1 and up to $3. If the commit $2 of revision $1 is
 * gone, because its number was reused: the scopes of all revisions. The last column is $1, or 0 if
 * its commit is gone. Prepared, because planning takes longer than execution.
 */
const TOUCHED = {
  name: 'touched',
  text: `select s.scope, concat_ws('.', s.revision, r.commit_id), r.committed_at, s.after
    from (select coalesce(max(number), 0) as number from revision
      where number = $1 and commit_id = $2) as known
      cross join lateral (select scope, max(revision) as revision, known.number as after
        from revision_scope
        where revision > known.number and revision <= $3 group by scope) as s
      join revision as r on r.number = s.revision
    where require_commit($3, $4)`,
};

type TouchedRow = readonly [scope: string, revision: string, committedAt: string, after: string];

/** Encodes a message of PostgreSQL's protocol, version 3: type, length and content. */
function message(kind: string, content: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(kind);
  head.writeInt32BE(4 + content.length, 1);
  return Buffer.concat([head, content]);
}

/** Bind without parameters and in text format, Execute for all rows, Sync. */
const EXECUTE_CHECK = Buffer.concat([
  message('B', Buffer.concat([Buffer.from(`\0${CHECK.name}\0`), Buffer.alloc(6)])),
  message('E', Buffer.alloc(5)),
  message('S', Buffer.alloc(0)),
]);

type Callback = (error: Error | null, row?: CheckRow) => void;

/**
 * Executes the prepared statement with one write and without a description, because every request
 * waits for it: a named statement of the driver takes 0.05 ms more CPU. The driver calls these
 * methods.
 */
class PreparedCheck {
  callback: Callback;
  #row: CheckRow | undefined;

  constructor(callback: Callback) {
    this.callback = callback;
  }

  submit({ stream }: pg.Connection): null {
    stream.write(EXECUTE_CHECK);
    return null;
  }

  handleDataRow({ fields }: { readonly fields: CheckRow }): void {
    this.#row = fields;
  }

  handleCommandComplete(): void {}

  handleError(error: Error): void {
    this.callback(error);
  }

  handleReadyForQuery(): void {
    this.callback(null, this.#row);
  }
}

const executePrepared = (client: pg.Client): Promise<CheckRow | undefined> =>
  new Promise((resolve, reject) => {
    client.query(new PreparedCheck((error, row) => (error ? reject(error) : resolve(row))));
  });

/** Connections that have prepared the statement. */
const prepared = new WeakSet<pg.Client>();

async function readCheckRow(client: pg.Client): Promise<CheckRow | undefined> {
  if (prepared.has(client)) return executePrepared(client);
  const { rows } = await client.query<string[]>({ ...CHECK, rowMode: 'array' });
  prepared.add(client);
  return rows[0] as CheckRow | undefined;
}

async function readTouched(client: pg.Client, after: string, until: string) {
  const values = [after, until].flatMap((each) => [numberOf(each), commitIdOf(each)]);
  const { rows } = await client.query<string[]>({ ...TOUCHED, values, rowMode: 'array' });
  return rows as unknown as readonly TouchedRow[];
}

/** The database has no epoch yet, for example while a dump is restored. */
export class NoEpochError extends Error {}

/**
 * Runs a revision check.
 * @param known the result of the previous check, of this server or another one
 * @returns `known` itself if nothing has changed
 * @throws NoEpochError, and the errors of the database
 */
export async function checkRevision(
  client: pg.Client,
  known: NewestRevision | null,
): Promise<NewestRevision> {
  const row = await readCheckRow(client);
  if (row === undefined) throw new NoEpochError('the table service has no row');
  const [epoch, keysVersion, revision] = row;
  const isSame = known !== null && epoch === known.epoch;
  if (isSame && revision === known.revision) {
    return keysVersion === known.keysVersion ? known : { ...known, keysVersion };
  }
  const isLater = isSame && isAfter(revision, known.revision);
  const touched = await readTouched(client, isLater ? known.revision : '0', revision);
  // If the known revision was lost, its scopes are invalid.
  const since = isLater && touched[0]?.[3] === numberOf(known.revision) ? known : null;
  const scopes = new Map(since?.scopes);
  for (const [scope, newest, committedAt] of touched) {
    scopes.set(scope, { revision: newest, committedAt });
  }
  const order = (known?.order ?? 0) + 1;
  const history = since?.history ?? (known?.history ?? 0) + 1;
  return { epoch, keysVersion, revision, scopes, order, history };
}

/** Commit time of a scope that was never touched. */
const NEVER = '1970-01-01 00:00:00+00';

/** The newest revision of a scope; "0" if it was never touched. */
export const revisionOf = ({ scopes }: NewestRevision, scope: string): string =>
  scopes.get(scope)?.revision ?? '0';

/** By their scopes, cached while a revision is the newest. */
const dataRevisions = new WeakMap<NewestRevision, Map<string, DataRevision>>();

/** The data revision of some scopes, as `readDataRevision` reads it from the database. */
export function dataRevisionAt(newest: NewestRevision, scopes: readonly string[]): DataRevision {
  let cached = dataRevisions.get(newest);
  if (cached === undefined) {
    cached = new Map();
    dataRevisions.set(newest, cached);
  }
  const key = scopes.join();
  const found = cached.get(key) ?? makeDataRevision(newest, scopes);
  cached.set(key, found);
  return found;
}

function makeDataRevision(newest: NewestRevision, scopes: readonly string[]): DataRevision {
  let revision = '0';
  let committedAt = NEVER;
  for (const scope of [...scopes, 'reference']) {
    const found = newest.scopes.get(scope);
    if (found === undefined || !isAfter(found.revision, revision)) continue;
    ({ revision, committedAt } = found);
  }
  const reference = revisionOf(newest, 'reference');
  return { revision, committedAt: instantOf(committedAt), reference, epoch: newest.epoch };
}
