import type { Kysely } from 'kysely';
import t from 'tap';
import { createKey } from '../../src/auth/keys/keys.ts';
import { findKey, verifyKey } from '../../src/auth/keys/verify.ts';
import { contentHash } from '../../src/db/content-hash.ts';
import { migrateDown, migrateUp, migrationStatus } from '../../src/db/migrate/migrate.ts';
import type { Database } from '../../src/db/schema.ts';
import { RULES, verify } from '../../src/verify/verify.ts';
import { testDatabase } from '../support/database/database.ts';
import { migrationsWith } from '../support/database/migrations.ts';
import { recordFigures } from '../support/run/faults.ts';
import { EXPANSION } from './expansion.ts';

/** Takes migrations back until one is the newest. */
async function backTo(db: Kysely<Database>, folder: URL, name: string): Promise<void> {
  for (;;) {
    const ran = (await migrationStatus(db, { folder })).filter(({ state }) => state === 'ran');
    if (ran.at(-1)?.name === name) return;
    await migrateDown(db, { folder, loseData: true });
  }
}

t.test('from each version to each later one and back, no number and no key changes', async (t) => {
  const { client, db } = await testDatabase(t, { seeded: true });
  const { url: folder } = await migrationsWith(t, EXPANSION);
  const released = (await migrationStatus(db)).at(-1)?.name ?? '';
  const versions = [released, ...Object.keys(EXPANSION)];
  const before = await contentHash(client);
  const { id, key } = await createKey(db, { name: 'a', scopes: ['prices:*'], expiresAt: null });
  t.same(await migrateUp(db, { folder }), versions.slice(1));
  for (const [at, name] of versions.entries()) {
    await backTo(db, folder, name);
    t.same((await contentHash(client)).parts, before.parts, `back to ${name}`);
    t.same(await migrateUp(db, { folder }), versions.slice(at + 1), `from ${name}`);
    t.same(await migrateUp(db, { folder }), [], 'and a second run has nothing to do');
    t.same((await contentHash(client)).parts, before.parts);
    t.match(await verifyKey((each) => findKey(db, each), key), { id });
  }
  await backTo(db, folder, released);
  const { rules } = await verify(client, RULES, () => {});
  const broken = rules.filter(({ count }) => count > 0);
  t.same(broken, [], 'all that must hold of the data holds');
  recordFigures('F43', { 'earlier versions': versions.length - 1 });
});
