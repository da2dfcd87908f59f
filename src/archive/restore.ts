import type pg from 'pg';
import { escapeIdentifier } from 'pg';
import { identitiesOf } from '../db/identities.ts';
import { ArchiveRefusal } from './manifest.ts';
import { ARCHIVED, OF_THE_MIGRATION } from './tables.ts';

const NAMES = ARCHIVED.map((each) => each.name);

/**
 * Makes sure that nothing was loaded into the database yet.
 * @throws ArchiveRefusal naming the tables that have rows
 */
export async function requireEmpty(driver: pg.ClientBase): Promise<void> {
  const full: string[] = [];
  for (const name of NAMES.filter((each) => !OF_THE_MIGRATION.includes(each))) {
    const { rows } = await driver.query(`select from ${escapeIdentifier(name)} limit 1`);
    if (rows.length > 0) full.push(name);
  }
  if (full.length === 0) return;
  throw new ArchiveRefusal(
    `the database holds data (${full.slice(0, 4).join(', ')}${full.length > 4 ? ' …' : ''}): ` +
      'an import needs one that was only migrated',
  );
}

/** What `pg_trigger.tgenabled` says, in SQL. */
const STATES: Readonly<Record<string, string>> = {
  O: 'enable',
  A: 'enable always',
  R: 'enable replica',
  D: 'disable',
};

interface Trigger {
  readonly table: string;
  readonly name: string;
  readonly state: string;
}

const TRIGGERS = `
  select c.relname as table, t.tgname as name, t.tgenabled as state
  from pg_trigger t join pg_class c on c.oid = t.tgrelid
  where t.tgrelid = any (select to_regclass(quote_ident(name)) from unnest($1::text[]) as u (name))
    and not t.tgisinternal`;

/**
 * Works while the tables take rows as they are: the triggers would give them a new revision. For
 * this transaction alone, and nobody else writes to the tables meanwhile; constraints hold on.
 */
export async function withoutTriggers(
  driver: pg.ClientBase,
  work: () => Promise<void>,
): Promise<void> {
  const { rows } = await driver.query<Trigger>(TRIGGERS, [NAMES]);
  for (const name of NAMES) {
    await driver.query(`alter table ${escapeIdentifier(name)} disable trigger user`);
  }
  await work();
  for (const { table, name, state } of rows) {
    await driver.query(
      `alter table ${escapeIdentifier(table)} ${STATES[state]} trigger ${escapeIdentifier(name)}`,
    );
  }
}

/** Removes what the migrations wrote and the archive brings; scopes let go of their markets. */
export async function clear(driver: pg.ClientBase): Promise<void> {
  await driver.query('create temp table own_service on commit drop as select * from service');
  await driver.query(`create temp table own_market on commit drop as
    select slug, name, scope from market left join access_scope on market_id = market.id`);
  await driver.query('update access_scope set market_id = null');
  for (const name of OF_THE_MIGRATION) await driver.query(`delete from ${name}`);
}

/**
 * Gives the scopes their markets again, adds markets that are newer than the archive, and leaves
 * the service what is its own.
 */
export async function keepOwn(driver: pg.ClientBase): Promise<void> {
  const own = ARCHIVED.find((each) => each.name === 'service')?.leftOut.map(escapeIdentifier) ?? [];
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

/** Statistics for the planner, and the map that lets an index be read alone. */
export const refreshPlans = (driver: pg.ClientBase): Promise<unknown> =>
  driver.query(`vacuum (analyze, skip_locked) ${NAMES.map(escapeIdentifier).join(', ')}`);
