import type pg from 'pg';
import { escapeIdentifier } from 'pg';
import { identitiesOf } from '../db/identities.ts';
import { ArchiveRefusal } from './manifest.ts';
import { ARCHIVED, MIGRATED_TABLES } from './tables.ts';

const NAMES = ARCHIVED.map((each) => each.name);

/**
 * Checks that the database contains no data.
 * @throws ArchiveRefusal with the names of tables that have rows
 */
export async function requireEmpty(driver: pg.ClientBase): Promise<void> {
  const full: string[] = [];
  for (const name of NAMES.filter((each) => !MIGRATED_TABLES.includes(each))) {
    const { rows } = await driver.query(`select from ${escapeIdentifier(name)} limit 1`);
    if (rows.length > 0) full.push(name);
  }
  if (full.length === 0) return;
  throw new ArchiveRefusal(
    `the database holds data (${full.slice(0, 4).join(', ')}${full.length > 4 ? ' …' : ''}): ` +
      'an import needs a database without data, such as a new one that was migrated',
  );
}

/**
 * Runs work with disabled triggers, which would give the rows a new revision. The transaction has
 * exclusive locks on the tables meanwhile; constraints still apply.
 */
export async function withoutTriggers(
  driver: pg.ClientBase,
  work: () => Promise<void>,
): Promise<void> {
  const setTriggers = async (action: 'disable' | 'enable'): Promise<void> => {
    for (const name of NAMES) {
      await driver.query(`alter table ${escapeIdentifier(name)} ${action} trigger user`);
    }
  };
  await setTriggers('disable');
  await work();
  await setTriggers('enable');
}

/** Deletes the rows of migrations, which the archive replaces, and detaches scopes from markets. */
export async function clearMigrated(driver: pg.ClientBase): Promise<void> {
  await driver.query('create temp table own_service on commit drop as select * from service');
  await driver.query(`create temp table own_market on commit drop as
    select slug, name, scope from market left join access_scope on market_id = market.id`);
  await driver.query('update access_scope set market_id = null');
  for (const name of MIGRATED_TABLES) await driver.query(`delete from ${name}`);
}

/**
 * Attaches the scopes to their markets, inserts markets that are newer than the archive, and
 * restores the columns of `service` that archives exclude.
 */
export async function restoreOwn(driver: pg.ClientBase): Promise<void> {
  const own =
    ARCHIVED.find((each) => each.name === 'service')?.excludedColumns.map(escapeIdentifier) ?? [];
  await driver.query(
    `update service set (${own.join()}) = row (${own.map((each) => `o.${each}`).join()})
      from own_service o`,
  );
  await driver.query(`insert into market (slug, name) select slug, name from own_market o
    where not exists (select from market m where m.slug = o.slug) order by slug`);
  await driver.query(`update access_scope a set market_id = m.id
    from own_market o join market m on m.slug = o.slug where a.scope = o.scope`);
}

/** Sets the sequences, so that new ids were never used before, not even in history. */
export async function setSequences(driver: pg.ClientBase): Promise<void> {
  const identities = await identitiesOf(driver);
  for (const { sequence, maxId } of identities.filter(({ table }) => NAMES.includes(table))) {
    await driver.query(
      `select setval('${sequence}'::regclass, coalesce(max_id, 1), max_id is not null)
        from (select ${maxId} as max_id) as ids`,
    );
  }
}

/** Refreshes the planner statistics, and the visibility map for index-only scans. */
export const refreshStatistics = (driver: pg.ClientBase): Promise<unknown> =>
  driver.query(`vacuum (analyze, skip_locked) ${NAMES.map(escapeIdentifier).join(', ')}`);
