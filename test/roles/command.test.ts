import { spawn } from 'node:child_process';
import { createHash, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { LOGINS, scramVerifier } from '../../src/db/migrate/roles.ts';
import { administer, testDatabase } from '../support/database/database.ts';
import { accountPrefix, addressAs, clientAs } from '../support/database/roles.ts';
import { prices } from '../support/process/programs.ts';

const COMMANDS = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

/** Runs `db roles` with an input. */
async function roles(url: string, input: string, ...args: string[]) {
  const child = spawn(process.execPath, [COMMANDS, 'db', 'roles', ...args], {
    env: { ...process.env, DATABASE_URL: url },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  return { code, stdout, stderr };
}

t.test('the command makes the accounts, with passwords that it never shows', async (t) => {
  const prefix = accountPrefix(t);
  const { url } = await testDatabase(t);
  const secrets = { service: 'the first secret ', loader: 'and "another\'s" $ecret' };
  const input = Object.entries(secrets).map((line) => `${line.join(' ')}\n`);
  const args = ['--prefix', prefix, '--passwords'];
  const result = await roles(url, input.join(''), ...args);
  t.match(result, { code: 0, stderr: /^Database: .+\n$/ });
  t.match(result.stdout, `${prefix}_migrator, ${prefix}_loader, ${prefix}_usage`);
  t.match(result.stdout, `Passwords were set for ${prefix}_service, ${prefix}_loader.`);
  t.notMatch(result.stdout, /secret|ecret/);
  for (const [login, password] of Object.entries(secrets)) {
    const { pool } = clientAs(t, addressAs(url, `${prefix}_${login}`, password));
    const { rows } = await pool.query('select current_user as name');
    t.same(rows, [{ name: `${prefix}_${login}` }]);
  }
  const again = await prices(t, { DATABASE_URL: url }, 'db', 'roles', '--prefix', prefix, '--json');
  t.match(JSON.parse(again.stdout), { accounts: { length: LOGINS.length }, passwordsSet: [] });
  const { pool } = clientAs(t, addressAs(url, `${prefix}_service`, secrets.service));
  t.ok(await pool.query('select'), 'a password stays until another is set');
});

t.test('faults of passwords are reported without the passwords', async (t) => {
  const prefix = accountPrefix(t);
  const { url, pool } = await testDatabase(t);
  const wrong: [string, RegExp][] = [
    ['service\n', /line 1 of the input is not one of migrator, loader/],
    ['service hunter2hunter2\nnobody hunter2hunter2\n', /line 2 /],
    ['service hunter2hunter2\nservice hunter2hunter2\n', /line 2 /],
    ['service hunter2\n', /the password for service must have 8 to 256/],
    ['service hünter2hunter2\n', /the password for service must have 8 to 256/],
  ];
  for (const [input, message] of wrong) {
    const { code, stdout, stderr } = await roles(url, input, '--prefix', prefix, '--passwords');
    t.same([code, stdout], [2, ''], message.source);
    t.match(stderr, message);
    t.notMatch(stderr, /h.nter2/);
  }
  t.match(await roles(url, '', '--prefix', 'Prices'), { code: 2, stderr: /a prefix has/ });
  t.match(await roles(url, '', '--print', '--passwords'), { code: 2, stderr: /one of/ });
  const accounts = 'select from pg_roles where starts_with(rolname, $1)';
  t.equal((await pool.query(accounts, [prefix])).rows.length, 0, 'and no account was made');
});

t.test('the printed script has the same effect in psql', async (t) => {
  const prefix = accountPrefix(t);
  const { url, pool } = await testDatabase(t);
  const { code, stdout } = await prices(t, {}, 'db', 'roles', '--print', '--prefix', prefix);
  t.equal(code, 0, 'and printing needs no database');
  t.notMatch(stdout, /prices_(service|owner|loader)/);
  await administer(url, stdout);
  const rights = `select has_table_privilege($1 || '_service', 'series', 'select') as reads,
    has_table_privilege($1 || '_service', 'series', 'insert') as writes`;
  t.same((await pool.query(rights, [prefix])).rows, [{ reads: true, writes: false }]);
});

t.test('a digest of a password is the one that PostgreSQL makes', async (t) => {
  // The example of RFC 7677, section 3: salt, iterations and the signature of the server.
  const salt = Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64');
  const [, stored = '', server = ''] =
    /\$([^$:]+):([^$:]+)$/.exec(scramVerifier('pencil', salt)) ?? [];
  const nonce = 'rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0';
  const message = [
    'n=user,r=rOprNGfwEbeRWgbNEkqO',
    `r=${nonce},s=${salt.toString('base64')},i=4096`,
    `c=biws,r=${nonce}`,
  ].join(',');
  const sign = (key: Buffer) => createHmac('sha256', key).update(message).digest();
  const signature = sign(Buffer.from(server, 'base64')).toString('base64');
  t.equal(signature, '6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=');
  const proof = Buffer.from('dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=', 'base64');
  const storedKey = Buffer.from(stored, 'base64');
  const clientKey = proof.map((byte, at) => byte ^ (sign(storedKey)[at] ?? 0));
  t.equal(createHash('sha256').update(clientKey).digest('base64'), stored);
});
