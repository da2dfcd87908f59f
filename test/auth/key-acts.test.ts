import t from 'tap';
import { readAudit } from '../../src/auth/keys/info.ts';
import { createKey } from '../../src/auth/keys/keys.ts';
import { KeyUse } from '../../src/auth/keys/use.ts';
import { testDatabase } from '../support/database/database.ts';

const FOREVER = { expiresAt: null };

t.test('the audit records the first use of a key, and no later one', async (t) => {
  const { db, pool } = await testDatabase(t);
  const { id } = await createKey(db, { name: 'a', scopes: ['prices:*'], ...FOREVER });
  await createKey(db, { name: 'never used', scopes: ['prices:*'], ...FOREVER });
  for (const instant of ['2026-03-05T16:10:00Z', '2026-03-05T16:11:00Z', '2026-03-05T16:09:00Z']) {
    const used = new KeyUse(pool, (error) => t.error(error));
    used.recordUse(id, Date.parse(instant));
    await used.close();
  }
  const expected = { action: 'first-used', id, before: null, reason: null };
  const audit = await readAudit(db, { limit: 100 });
  const acts = audit.filter(({ action }) => action === 'first-used');
  t.match(acts, [expected]);
  t.equal(acts.length, 1);
  t.equal(audit.length, 5, 'use is no change of a key');
  t.match(acts[0]?.after, { last_used_at: /^2026-03-05T16:10:00/ });
  const others = new KeyUse(pool, (error) => t.error(error));
  others.recordUse('nosuchidxx', Date.now());
  await others.close();
  t.same((await pool.query('select public_id from key_use')).rows, [{ public_id: id }]);
});
