import type { Kysely } from 'kysely';
import t from 'tap';
import { createKey } from '../../src/auth/keys.ts';
import { findKey, verifyKey } from '../../src/auth/verify-key.ts';
import { contentHash } from '../../src/db/content-hash.ts';
import { migrateDown, migrateUp, migrationStatus } from '../../src/db/migrate.ts';
import type { Database } from '../../src/db/schema.ts';
import { RULES, verify } from '../../src/verify/verify.ts';
import { testDatabase } from '../support/database.ts';
import { tellFigures } from '../support/faults.ts';

/** Brings a schema back to a version of before; what that did not know goes with it. */
async function backTo(db: Kysely<Database>, name: string): Promise<void> {
  for (;;) {
    const ran = (await migrationStatus(db)).filter(({ state }) => state === 'ran');
    if (ran.at(-1)?.name === name) return;
    await migrateDown(db, { loseData: true });
  }
}

t.test(
  'from every version before the schema becomes this one, and no number changes',
  async (t) => {
    const { client, db } = await testDatabase(t, { seeded: true });
    const all = (await migrationStatus(db)).map(({ name }) => name);
    const before = await contentHash(client);
    const { id, key } = await createKey(db, { name: 'a', scopes: ['prices:*'], expiresAt: null });
    for (const [at, name] of all.entries()) {
      await backTo(db, name);
      t.same(await migrateUp(db), all.slice(at + 1), `from ${name}`);
      t.same(await migrateUp(db), [], 'and a second run has nothing to do');
      t.same((await contentHash(client)).parts, before.parts);
      t.match(await verifyKey((each) => findKey(db, each), key, Date.now()), { id });
      const { rules } = await verify(client, RULES, () => {});
      const broken = rules.filter(({ count }) => count > 0);
      t.same(broken, [], 'all that must hold of the data and the schema holds');
    }
    tellFigures('F43', { 'versions before': all.length });
  },
);
