import t from 'tap';
import { listKeys, readAudit, showKey } from '../../src/auth/keys/info.ts';
import { createKey, rotateKey } from '../../src/auth/keys/keys.ts';
import { testDatabase } from '../support/database/database.ts';
import { prices } from '../support/process/programs.ts';

const REQUEST = { name: 'desk', scopes: ['prices:*'], expiresAt: null };
const GRACE = { graceMs: 3_600_000, expiresAt: 'same-lifetime' } as const;

t.test('keys and their audit name each other by public ids when one is rotated', async (t) => {
  const { db, url: DATABASE_URL } = await testDatabase(t);
  const other = await createKey(db, REQUEST);
  const first = await createKey(db, REQUEST);
  const second = await rotateKey(db, first.id, GRACE);
  const third = await rotateKey(db, second.id, { ...GRACE, graceMs: 0 });
  t.match(second, { replaces: first.id, replacedBy: null });
  t.same(
    (await listKeys(db)).map(({ id, replaces, replacedBy }) => [id, replaces, replacedBy]),
    [
      [other.id, null, null],
      [first.id, null, second.id],
      [second.id, first.id, third.id],
      [third.id, second.id, null],
    ],
  );
  const audit = await readAudit(db, { id: second.id, limit: 10 });
  t.match(audit, [
    { action: 'revoked', before: { replaced_by: null }, after: { replaced_by: third.id } },
    { action: 'changed', after: { scope: 'prices:*' }, replaces: null },
    { action: 'created', after: { replaced_by: null, name: 'desk' }, replaces: first.id },
  ]);
  const keys = (...args: string[]) => prices(t, { DATABASE_URL }, 'keys', ...args);
  t.match(
    (await keys('show', second.id)).stdout,
    `\nreplaces ${first.id}\nreplaced by ${third.id}\n`,
  );
  const { stdout } = await keys('audit');
  const row = (action: string, id: string, change: string) =>
    t.match(stdout, new RegExp(` ${action} +${id} +${change} +\\S`), `${action} ${id}`);
  row('rotated', first.id, `replaced by ${second.id}`);
  row('created', second.id, `replaces ${first.id}`);
  row('revoked', second.id, `replaced by ${third.id}`);
  row('created', first.id, '–');
});

t.test(
  'the audit of keys is readable after they and their replacements were removed',
  async (t) => {
    const { db, pool } = await testDatabase(t);
    const old = await createKey(db, REQUEST);
    const replacement = await rotateKey(db, old.id, GRACE);
    const before = await readAudit(db, { id: old.id, limit: 10 });
    await pool.query('delete from api_key_scope; delete from api_key');
    t.match(before, [{ action: 'rotated', after: { replaced_by: replacement.id } }]);
    const after = await readAudit(db, { id: old.id, limit: 10 });
    t.same(
      after.map(({ action }) => action),
      ['deleted', 'changed', 'rotated', 'changed', 'created'],
    );
    t.match(after[2], { after: { replaced_by: null } }, 'no number of a row that there is not');
  },
);

t.test('a key that replaces several keys is reported once, with the newest of them', async (t) => {
  const { db, pool } = await testDatabase(t);
  const [first, second, replacement] = [
    await createKey(db, REQUEST),
    await createKey(db, REQUEST),
    await createKey(db, REQUEST),
  ];
  await pool.query(
    `update api_key set replaced_by = (select id from api_key where public_id = $1)
      where public_id <> $1`,
    [replacement.id],
  );
  t.match(await showKey(db, replacement.id), { replaces: second.id });
  t.equal((await listKeys(db)).length, 3);
  t.equal((await showKey(db, first.id)).replacedBy, replacement.id);
  const created = (await readAudit(db, { id: replacement.id, limit: 10 })).filter(
    ({ action }) => action === 'created',
  );
  t.match(created, [{ replaces: second.id }]);
  t.equal(created.length, 1);
});

t.test('an audit of a key that never was is refused, as it is to show it', async (t) => {
  const { db, pool, url: DATABASE_URL } = await testDatabase(t);
  for (const command of ['audit', 'show', 'rotate']) {
    t.match(await prices(t, { DATABASE_URL }, 'keys', command, 'nosuchidxx'), {
      code: 2,
      stdout: /^$/,
      stderr: /^Database: .+\ncommodity-prices: there is no key with the id nosuchidxx\n$/,
    });
  }
  t.same(await readAudit(db, { limit: 10 }), [], 'an audit of all may be empty');
  const { id } = await createKey(db, REQUEST);
  await pool.query('alter table key_audit disable trigger all; delete from key_audit');
  t.same(await readAudit(db, { id, limit: 10 }), [], 'also that of a key which was never noted');
});
