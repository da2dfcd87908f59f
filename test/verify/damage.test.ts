import type pg from 'pg';
import t from 'tap';
import { checkRules, RULES } from '../../src/verify/verify.ts';
import { inTransaction } from '../support/database/minimal-data.ts';
import { DAMAGES } from './damages.ts';
import { storedWorld } from './support.ts';

/** Inserts damage with the guards disabled, runs every rule, and rolls back. */
const foundAfter = (pool: pg.Pool, statements: readonly string[]): Promise<string[]> =>
  inTransaction(
    pool,
    async (client) => {
      await client.query('set local session_replication_role = replica');
      for (const statement of statements) await client.query(statement);
      const findings = await checkRules(client, RULES);
      return findings.filter(({ count }) => count > 0).map(({ rule }) => rule);
    },
    'rollback',
  );

t.test('every kind of damage is found, and named by its rule', async (t) => {
  const { pool } = await storedWorld(t);
  t.strictSame(await foundAfter(pool, []), []);
  for (const [what, { rules, sql }] of Object.entries(DAMAGES)) {
    const found = await foundAfter(pool, sql);
    t.strictSame(found.sort(), [...rules].sort(), what);
  }
  t.strictSame(await foundAfter(pool, []), [], 'and was rolled back');
});

t.test('there is damage for every rule', async (t) => {
  const named = new Set(Object.values(DAMAGES).flatMap(({ rules }) => rules));
  t.same(
    RULES.map(({ name }) => name).filter((name) => !named.has(name)),
    [],
  );
});
