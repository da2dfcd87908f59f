import { type Kysely, type RawBuilder, sql } from 'kysely';
import { instantOf, instantOrNull } from '../../db/instant.ts';
import type { Database } from '../../db/schema.ts';
import type { KeyLimits } from '../../limits/limits.ts';
import { EXIT, ExpectedError } from '../../std/base-errors.ts';
import { limitsOf, scopesOfRow } from './verify.ts';

/** Maps the public id of each replacement key to that of the key it replaced. */
const replacedKeys = (db: Kysely<Database>) =>
  db
    .selectFrom('api_key as old')
    .innerJoin('api_key as new', 'new.id', 'old.replaced_by')
    // Manual edits can make one key the replacement of several: the newest of these is reported.
    .distinctOn('new.id')
    .select(['new.public_id as replacement', 'old.public_id as replaced'])
    .orderBy('new.id')
    .orderBy('old.id', 'desc');

/**
 * The audited row of a key before or after a change. The internal id of its replacement becomes
 * the public id; null if that row was deleted since.
 */
const withPublicIds = (side: 'before' | 'after'): RawBuilder<unknown> => {
  const row = sql.ref(`key_audit.${side}`);
  return sql`case when ${row} ->> 'replaced_by' is null then ${row}
    else jsonb_set(${row}, '{replaced_by}', coalesce((select to_jsonb(new.public_id)
      from api_key new where new.id = (${row} ->> 'replaced_by')::integer), 'null')) end`;
};

const TEXT_LENGTH_MAX = 200;

/** A key command that cannot be executed. The message is one line for a terminal. */
export class KeyError extends ExpectedError {
  override readonly name = 'KeyError';
  override readonly exitCode = EXIT.usage;
}

/** The public data of a key. Instants are RFC 3339 in UTC. */
export interface KeyInfo {
  readonly id: string;
  readonly name: string;
  readonly owner: string | null;
  readonly scopes: readonly string[];
  readonly status: 'active' | 'expired' | 'revoked';
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
  readonly revokedReason: string | null;
  /** To the minute; null if it was never used. */
  readonly lastUsedAt: string | null;
  /** The limits of the key; null for those of the service. */
  readonly limits: KeyLimits | null;
  readonly replacedBy: string | null;
  readonly replaces: string | null;
}

/** @throws KeyError for a text that is empty, too long or has control characters */
export function checkText(field: string, text: string): void {
  if (text.trim() === '') throw new KeyError(`the ${field} must not be empty`);
  if (text.length > TEXT_LENGTH_MAX) {
    throw new KeyError(`the ${field} has more than ${TEXT_LENGTH_MAX} characters`);
  }
  if (/[\p{Cc}\p{Cs}]/u.test(text)) throw new KeyError(`the ${field} has control characters`);
}

/** Rejects whole keys: a secret must not appear in an error message or a statement. */
export function checkId(id: string): void {
  if (!/^[0-9A-Za-z]{10}$/.test(id)) {
    throw new KeyError(
      'a key is named by its public id, the 10 characters after cps_live_ or cps_cal_',
    );
  }
}

/** Lists the keys, oldest first. @param id only the key with this public id */
export async function listKeys(db: Kysely<Database>, id?: string): Promise<KeyInfo[]> {
  const rows = await db
    .selectFrom('api_key')
    .leftJoin(replacedKeys(db).as('rotation'), 'rotation.replacement', 'api_key.public_id')
    .leftJoin('key_use', 'key_use.public_id', 'api_key.public_id')
    .select(['rotation.replaced', 'api_key.public_id', 'name', 'owner', scopesOfRow.as('scopes')])
    .select(['created_at', 'expires_at', 'revoked_at', 'revoked_reason', 'key_use.last_used_at'])
    .select(['rate_per_minute', 'rate_burst', 'concurrent'])
    .select(
      sql<string | null>`(select new.public_id from api_key new
        where new.id = api_key.replaced_by)`.as('replaced_by'),
    )
    .select(
      sql<KeyInfo['status']>`case when revoked_at is not null then 'revoked'
        when expires_at <= now() then 'expired' else 'active' end`.as('status'),
    )
    .$if(id !== undefined, (query) => query.where('api_key.public_id', '=', id ?? ''))
    .orderBy('api_key.id')
    .execute();
  return rows.map((row) => ({
    id: row.public_id,
    name: row.name,
    owner: row.owner,
    scopes: row.scopes,
    status: row.status,
    createdAt: instantOf(row.created_at),
    expiresAt: instantOrNull(row.expires_at),
    revokedAt: instantOrNull(row.revoked_at),
    revokedReason: row.revoked_reason,
    lastUsedAt: instantOrNull(row.last_used_at),
    limits: limitsOf(row),
    replacedBy: row.replaced_by,
    replaces: row.replaced,
  }));
}

/** Reads one key by its public id. @throws KeyError if it does not exist */
export async function showKey(db: Kysely<Database>, id: string): Promise<KeyInfo> {
  checkId(id);
  const [key] = await listKeys(db, id);
  if (key === undefined) throw new KeyError(`there is no key with the id ${id}`);
  return key;
}

/** One entry of the key audit. */
export interface KeyEvent {
  /** RFC 3339 in UTC. */
  readonly at: string;
  readonly actor: string;
  /** The account of the database that logged in; null in entries from before it was recorded. */
  readonly account: string | null;
  readonly action: string;
  readonly id: string;
  /** The row of the key before and after the change, without its digest. */
  readonly before: unknown;
  readonly after: unknown;
  readonly reason: string | null;
  /** Public id of the key that this one replaces. */
  readonly replaces: string | null;
}

/**
 * Reads the audit of one key or of all keys, newest first. The table is append-only.
 * @throws KeyError if no key has or had the id
 */
export async function readAudit(
  db: Kysely<Database>,
  { id, limit }: { readonly id?: string | undefined; readonly limit: number },
): Promise<KeyEvent[]> {
  if (id !== undefined) checkId(id);
  const rows = await db
    .selectFrom('key_audit')
    .leftJoin(replacedKeys(db).as('rotation'), (join) =>
      join
        .onRef('rotation.replacement', '=', 'key_audit.public_id')
        .on('key_audit.action', '=', 'created'),
    )
    .select(['at', 'actor', 'account', 'action', 'public_id as id'])
    .select([withPublicIds('before').as('before'), withPublicIds('after').as('after')])
    .select(['reason', 'rotation.replaced as replaces'])
    .$if(id !== undefined, (query) => query.where('public_id', '=', id ?? ''))
    .orderBy('key_audit.id', 'desc')
    .limit(limit)
    .execute();
  // A deleted key keeps its audit entries. A key older than the audit has none.
  if (id !== undefined && rows.length === 0) await showKey(db, id);
  return rows.map((row) => ({ ...row, at: instantOf(row.at) }));
}
