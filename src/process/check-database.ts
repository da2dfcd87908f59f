import type { Kysely } from 'kysely';
import type { Logger } from 'pino';
import { databaseAddressOf } from '../config/addresses.ts';
import { type Config, ConfigError } from '../config/config.ts';
import type { Client } from '../db/client.ts';
import { databaseFailureOf } from '../db/failures.ts';
import { accountOf, hasPoints, NO_PRICES, rateSourceSlugs } from '../db/health.ts';
import { isSchemaCurrent } from '../db/migrate/migrations.ts';
import { clockFault } from '../db/revisions.ts';
import type { Database } from '../db/schema.ts';
import { sharedNextRun } from '../db/shared-work.ts';
import { PROGRAM } from '../std/program.ts';
import { sentenceOf } from './failure.ts';

/**
 * Refuses a pooler that shares the sessions of the server between clients.
 * @param name the setting of the address
 * @throws ConfigError, and the errors of the database
 */
export async function requireOwnSessions(
  client: Pick<Client, 'poolsTransactions'>,
  name: 'DATABASE_URL' | 'USAGE_DATABASE_URL',
): Promise<void> {
  if (!(await client.poolsTransactions())) return;
  throw new ConfigError(
    `${name}: a pooler before the database gives each transaction another session, as PgBouncer ` +
      'does with pool_mode=transaction; settings of sessions and notifications would get lost: ' +
      'set pool_mode=session, or use the address of PostgreSQL itself ' +
      '(docs/managed-postgresql.md)',
  );
}

/** Logs an error if FX_SOURCE names an unknown source of rates. */
async function checkRateSource(
  db: Kysely<Database>,
  { FX_SOURCE }: Config,
  logger: Logger,
): Promise<void> {
  const known = await rateSourceSlugs(db);
  // A database without any source is not seeded yet; /ready reports that.
  if (known.length === 0 || known.includes(FX_SOURCE)) return;
  logger.error(
    `FX_SOURCE: there is no source of exchange rates ${FX_SOURCE}, only ${known.join(', ')}; ` +
      'no real rates are used until that source is loaded',
  );
}

/**
 * Checks the clock of the database now and after each commit, and logs it once each time that it
 * jumped back. Commits during a check are covered by the next one.
 * @returns a function that ends this
 */
export function watchClock({ db, link }: Pick<Client, 'db' | 'link'>, logger: Logger): () => void {
  let wasBehind = false;
  const check = sharedNextRun(async () => {
    const fault = await clockFault(db);
    if (fault !== null && !wasBehind) logger.warn(fault);
    wasBehind = fault !== null;
  });
  // The link logs an outage.
  const checkNow = (): void => void check().catch(() => {});
  checkNow();
  return link.onCommit(checkNow);
}

/** Logs missing and excess rights of the account. Returns false if rights are missing. */
async function checkAccount(db: Kysely<Database>, logger: Logger): Promise<boolean> {
  const { name, excess, unreadable } = await accountOf(db);
  const [first, ...others] = unreadable;
  if (first !== undefined) {
    const more = others.length === 0 ? '' : ` and ${others.length} other tables`;
    logger.error(
      `DATABASE_URL: the account ${name} may not read ${first}${more}; run: ` +
        `${PROGRAM} db roles`,
    );
  }
  if (excess.length > 0) {
    logger.warn(
      `DATABASE_URL: the account ${name} may do more than the service needs, which only reads: ` +
        `it ${excess.join(', ')}; run "${PROGRAM} db roles" and let the service ` +
        'log in as prices_service',
    );
  }
  return first === undefined;
}

/**
 * Checks the database once at the start, and logs what an operator must fix: connection, schema,
 * rights of the account, source of rates. Never throws, because the fault may be temporary.
 */
export async function checkDatabase(
  db: Kysely<Database>,
  config: Config,
  logger: Logger,
): Promise<void> {
  try {
    if (!(await checkAccount(db, logger))) return;
    if (await isSchemaCurrent(db)) {
      await checkRateSource(db, config, logger);
      if (!(await hasPoints(db))) logger.info(`${NO_PRICES}; /ready is degraded until then`);
      return;
    }
    const where = databaseAddressOf(config.DATABASE_URL ?? '') ?? 'the database';
    logger.error(
      `DATABASE_URL: ${where} lacks the schema of this version; every answer is 503 until it is ` +
        `migrated; run: ${PROGRAM} db migrate`,
    );
  } catch (error) {
    // The link logs an unreachable database.
    if (databaseFailureOf(error)?.reason === 'unavailable') return;
    logger.error(`${sentenceOf(error)}; every answer is 503 until that is fixed`);
  }
}
