import t from 'tap';
import { createKey } from '../../src/auth/keys/keys.ts';
import { findKey, verifyKey } from '../../src/auth/keys/verify.ts';
import { contentHash } from '../../src/db/content-hash.ts';
import { migrateUp } from '../../src/db/migrate/migrate.ts';
import { RULES, verify } from '../../src/verify/verify.ts';
import { testDatabase } from '../support/database/database.ts';
import { migrationsWith } from '../support/database/migrations.ts';
import { recordFigures } from '../support/run/faults.ts';
import { EXPANSION } from './expansion.ts';

t.test('from each version to the newest, no number and no key changes', async (t) => {
  const { url: folder } = await migrationsWith(t, EXPANSION);
  const added = Object.keys(EXPANSION);
  for (const [at, name] of ['this version', ...added].entries()) {
    const { client, db } = await testDatabase(t, { seeded: true });
    const before = await contentHash(client);
    const { id, key } = await createKey(db, { name: 'a', scopes: ['prices:*'], expiresAt: null });
    if (at > 0) t.same(await migrateUp(db, { folder, until: name }), added.slice(0, at));
    t.same((await contentHash(client)).parts, before.parts, name);
    t.same(await migrateUp(db, { folder }), added.slice(at), `from ${name}`);
    t.same(await migrateUp(db, { folder }), [], 'and a second run has nothing to do');
    t.same((await contentHash(client)).parts, before.parts);
    t.match(await verifyKey((each) => findKey(db, each), key), { id });
    const { rules } = await verify(client, RULES, () => {});
    const broken = rules.filter(({ count }) => count > 0);
    t.same(broken, [], 'all that must hold of the data holds');
  }
  recordFigures('F43', { 'earlier versions': added.length });
});
