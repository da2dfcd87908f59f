import type pg from 'pg';
import { instantOf } from './instant.ts';
import { commitIdOf, type Head, isAfter, numberOf } from './revisions.ts';

/** The newest revision of a scope: a market, `reference`, or `fx:<source>`. */
interface ScopeState {
  readonly revision: string;
  /** Commit time, as PostgreSQL prints it. */
  readonly committedAt: string;
}

/** The newest revision of the database. The same object as before when nothing has changed. */
export interface Newest {
  readonly epoch: string;
  /** Changes with every change of an API key. */
  readonly keysVersion: string;
  /** The newest revision of all scopes; "0" before the first. */
  readonly revision: string;
  readonly scopes: ReadonlyMap<string, ScopeState>;
  /** Grows with each reading that found other data: of two, the greater is the later one. */
  readonly order: number;
  /** Grows when a known revision is gone, or the epoch is another. */
  readonly history: number;
}

/** One row: the epoch, the version of the API keys, and the newest revision. */
type LookRow = readonly [epoch: string, keysVersion: string, revision: string];

const LOOK = {
  name: 'look',
  text: `select epoch, keys_version || '.' || keys_change_id,
    coalesce((select concat_ws('.', number, commit_id) from revision
      order by number desc limit 1), '0') from service`,
};

/**
 * The scopes that the revisions after one, up to another, touched; those of all revisions if the
 * first is not the commit that it was, because its number came back. The last column is the number
 * of the first. Prepared, as planning it takes longer than reading.
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

/** A message of PostgreSQL's protocol, version 3: type, length and content. */
function message(kind: string, content: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(kind);
  head.writeInt32BE(4 + content.length, 1);
  return Buffer.concat([head, content]);
}

/** Bind without parameters and all in text, Execute for all rows, Sync: the same each time. */
const EXECUTE_LOOK = Buffer.concat([
  message('B', Buffer.concat([Buffer.from(`\0${LOOK.name}\0`), Buffer.alloc(6)])),
  message('E', Buffer.alloc(5)),
  message('S', Buffer.alloc(0)),
]);

type Callback = (error: Error | null, row?: LookRow) => void;

/**
 * Executes the prepared statement with one write and without its description: every request waits
 * for it. The driver calls these methods.
 */
class QuickLook {
  callback: Callback;
  #row: LookRow | undefined;

  constructor(callback: Callback) {
    this.callback = callback;
  }

  submit({ stream }: pg.Connection): null {
    stream.write(EXECUTE_LOOK);
    return null;
  }

  handleDataRow({ fields }: { readonly fields: LookRow }): void {
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

const quickLook = (client: pg.Client): Promise<LookRow | undefined> =>
  new Promise((resolve, reject) => {
    client.query(new QuickLook((error, row) => (error ? reject(error) : resolve(row))));
  });

/** Connections that have prepared the statement. */
const prepared = new WeakSet<pg.Client>();

async function look(client: pg.Client): Promise<LookRow | undefined> {
  if (prepared.has(client)) return quickLook(client);
  const { rows } = await client.query<string[]>({ ...LOOK, rowMode: 'array' });
  prepared.add(client);
  return rows[0] as LookRow | undefined;
}

async function readTouched(client: pg.Client, after: string, until: string) {
  const values = [after, until].flatMap((each) => [numberOf(each), commitIdOf(each)]);
  const { rows } = await client.query<string[]>({ ...TOUCHED, values, rowMode: 'array' });
  return rows as unknown as readonly TouchedRow[];
}

/** A database without the row of its epoch, as while a dump is restored. */
export class NoService extends Error {}

/**
 * Reads the newest revision.
 * @param known the newest revision that was read before, from this server or another one
 * @returns `known` itself when nothing has changed
 * @throws NoService, and the errors of the database
 */
export async function readNewest(client: pg.Client, known: Newest | null): Promise<Newest> {
  const row = await look(client);
  if (row === undefined) throw new NoService('the table service has no row');
  const [epoch, keysVersion, revision] = row;
  const isSame = known !== null && epoch === known.epoch;
  if (isSame && revision === known.revision) {
    return keysVersion === known.keysVersion ? known : { ...known, keysVersion };
  }
  const isLater = isSame && isAfter(revision, known.revision);
  const touched = await readTouched(client, isLater ? known.revision : '0', revision);
  // If the known revision is gone, nothing that was known of it holds.
  const since = isLater && touched[0]?.[3] === numberOf(known.revision) ? known : null;
  const scopes = new Map(since?.scopes);
  for (const [scope, newest, committedAt] of touched) {
    scopes.set(scope, { revision: newest, committedAt });
  }
  const order = (known?.order ?? 0) + 1;
  const history = since?.history ?? (known?.history ?? 0) + 1;
  return { epoch, keysVersion, revision, scopes, order, history };
}

/** When nothing had been committed yet. */
const NEVER = '1970-01-01 00:00:00+00';

/** The newest revision of a scope; "0" where nothing ever touched it. */
export const revisionOf = ({ scopes }: Newest, scope: string): string =>
  scopes.get(scope)?.revision ?? '0';

/** Heads by their scopes, for as long as a revision is the newest. */
const heads = new WeakMap<Newest, Map<string, Head>>();

/** The head of some scopes and of the reference data, as `headOf` reads it from the database. */
export function headAt(newest: Newest, scopes: readonly string[]): Head {
  let known = heads.get(newest);
  if (known === undefined) {
    known = new Map();
    heads.set(newest, known);
  }
  const key = scopes.join();
  const found = known.get(key) ?? madeHead(newest, scopes);
  known.set(key, found);
  return found;
}

function madeHead(newest: Newest, scopes: readonly string[]): Head {
  let revision = '0';
  let committedAt = NEVER;
  for (const scope of [...scopes, 'reference']) {
    const state = newest.scopes.get(scope);
    if (state === undefined || !isAfter(state.revision, revision)) continue;
    ({ revision, committedAt } = state);
  }
  const reference = revisionOf(newest, 'reference');
  return { revision, committedAt: instantOf(committedAt), reference, epoch: newest.epoch };
}
