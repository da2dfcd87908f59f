import { globSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { databaseAddressOf } from '../../src/config/addresses.ts';
import { ConfigError, configOf } from '../../src/config/config.ts';
import { CLIENT_SECRETS, SECRETS, secretsFromFiles } from '../../src/config/environment.ts';
import { REMOVED_SETTINGS, SETTINGS, type Setting } from '../../src/config/settings.ts';
import { makeFolder } from '../support/run/folders.ts';

const SECRET = 'a secret that must never appear in a log';

t.test('.env.example documents every setting with its default, and no other', async (t) => {
  const text = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8');
  const documented = Object.fromEntries(
    [...text.matchAll(/^#([A-Z][A-Z0-9_]*)=(.*)$/gm)].map(([, name, value]) => [name, value]),
  );
  const defaults = Object.fromEntries(
    Object.entries(SETTINGS).map(([name, setting]: [string, Setting]) => [
      name,
      String(setting.default ?? ''),
    ]),
  );
  t.strictSame(documented, defaults);
  for (const [name, { description }] of Object.entries(SETTINGS)) {
    t.ok(text.includes(`# ${description}`), `${name} is explained as in the code`);
  }
  t.doesNotThrow(() => configOf(documented));
  for (const name of SECRETS) t.match(text, new RegExp(`^# ${name}_FILE=`, 'm'));
});

t.test('without PUBLIC_URL the address of the service has its port', async (t) => {
  t.equal(configOf({ PORT: '8080' }).PUBLIC_URL, 'http://127.0.0.1:8080');
  t.equal(configOf({ PORT: '0' }).PUBLIC_URL, SETTINGS.PUBLIC_URL.default, 'the port is unknown');
  const PUBLIC_URL = 'https://prices.example.com';
  t.equal(configOf({ PORT: '8080', PUBLIC_URL }).PUBLIC_URL, PUBLIC_URL);
});

t.test('.env.example begins with the fifteen settings that most installations set', async (t) => {
  const text = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8');
  const [first = '', rarely = ''] = text.split('\n# ===== Rarely\n');
  const named = (part: string): number => part.match(/^#[A-Z][A-Z0-9_]*=/gm)?.length ?? 0;
  t.equal(named(first), 15);
  t.equal(named(first) + named(rarely), Object.keys(SETTINGS).length);
});

t.test('a secret may come from a file, whose faults name the variable', async (t) => {
  const folder = await makeFolder();
  t.teardown(folder.remove);
  const file = async (name: string, text: string): Promise<string> => {
    const path = join(folder.path, name);
    await writeFile(path, text);
    return path;
  };
  const good = await file('good', `${SECRET}\n`);
  const env = Object.fromEntries(SECRETS.map((name) => [`${name}_FILE`, good]));
  t.same(
    [...secretsFromFiles(env).secrets],
    SECRETS.map((name) => [name, SECRET]),
  );
  t.equal(secretsFromFiles({ JWT_SECRET_FILE: '', PGPASSWORD: 'x' }).secrets.size, 0);
  const wrong = {
    JWT_SECRET: SECRET,
    JWT_SECRET_FILE: good,
    PGPASSWORD_FILE: join(folder.path, 'none'),
    DATABASE_URL_FILE: folder.path,
    USAGE_DATABASE_URL_FILE: await file('empty', '\n'),
    COMMODITY_PRICES_KEY_FILE: await file('lines', `${SECRET}\n${SECRET}\n`),
  };
  const { faults } = secretsFromFiles(wrong, [...SECRETS, ...CLIENT_SECRETS]);
  t.match(faults, [
    /^DATABASE_URL_FILE: cannot read .*: it is a folder$/,
    /^USAGE_DATABASE_URL_FILE: .* is empty$/,
    /^PGPASSWORD_FILE: cannot read .*none: there is no such file$/,
    /^JWT_SECRET_FILE: set only one of JWT_SECRET_FILE, JWT_SECRET$/,
    /^COMMODITY_PRICES_KEY_FILE: .* has more than one line$/,
  ]);
  t.equal(faults.length, 5);
  t.notOk(faults.join().includes(SECRET));
});

/** Names that settings and environment variables with secrets have. */
const SECRET_NAME = /(?:^|_)(?:KEY|SECRET|PASSWORD|TOKEN|HEADERS)$|PASSWORD|DATABASE_URL$/;

t.test('every secret variable that the program reads may come from a file', async (t) => {
  const root = new URL('../../src/', import.meta.url);
  // The programs of the explorer run elsewhere.
  const files = globSync('**/*.ts', { cwd: root });
  const read = new Set<string>(Object.keys(SETTINGS));
  for (const file of files) {
    const text = readFileSync(new URL(file, root), 'utf8');
    const own = new Set([...text.matchAll(/const (?:\{ )?([A-Z][A-Z0-9_]*) =/g)].map(([, n]) => n));
    // env.NAME, env['NAME'], and a name in quotes or as a member, such as { NAME: value } = env.
    for (const [, name = ''] of text.matchAll(/[.'{ ]([A-Z][A-Z0-9_]*[A-Z0-9])(?=['\]:;, })])/g)) {
      if (/process\.env|\benv\b/.test(text) && !own.has(name)) read.add(name);
    }
  }
  const secrets = [...read].filter((name) => SECRET_NAME.test(name));
  const inFiles: readonly string[] = [...SECRETS, ...CLIENT_SECRETS];
  t.same(
    secrets.filter((name) => !inFiles.includes(name)),
    [],
  );
  for (const name of inFiles) t.ok(secrets.includes(name), `${name} is found`);
});

t.test(
  'without an environment everything has its default, and nothing can change it',
  async (t) => {
    const config = configOf({});
    t.match(config, { PORT: 3000, HOST: '127.0.0.1', DATA_DIR: '.data', LOG_LEVEL: 'info' });
    t.equal(config.DATABASE_URL, undefined);
    t.ok(Object.isFrozen(config));
    t.strictSame(configOf({ PORT: '', DATABASE_URL: '' }), config, 'empty counts as not set');
  },
);

t.test('a bad value names its variable', async (t) => {
  const bad = {
    PORT: ['abc', '-1', '65536', '80.5', '0x50', ' 80', '1e3', '9'.repeat(40)],
    JWT_SCOPE_CLAIMS: [
      'roles,',
      '=prices/',
      'roles,roles',
      'roles,roles=a/',
      'sub',
      'roles,aud=a/',
      'a b',
      'rôles',
      'a,b,c,d,e,f,g,h,i',
    ],
    DATABASE_URL: [
      'mysql://a/b',
      'localhost',
      'postgres://me:pw@host:port/db',
      'postgres://me:pw@host:65536/db',
      'postgres://me:p/w@host/db',
      'postgres://12:3/4@host/db',
      'postgres://12:3#4@host/db',
      'postgres://12:3?4@host/db',
      'postgres://me:p%w@host/db',
    ],
    LOG_LEVEL: ['loud', 'INFO'],
    TRUST_PROXY: ['1', 'abc', '10.0.0.0/99', '10.0.0.0/0', '10.1', '::1/129', '10.0.0.1,', 'all'],
    JWT_SECRET: ['short'],
    JWT_JWKS_URL: [
      'http://example.com/keys',
      'http://localhost.example.com/',
      'file:///keys',
      'https://a:b/keys',
      'https://',
      'http://localhost:x@example.com/keys',
      'https://me:pw@example.com/keys',
    ],
    ECB_URL: [
      'http://example.com/a.zip',
      'ftp://example.com/a.zip',
      'http://localhost:x@example.com/',
    ],
    BODY_BYTES_MAX: ['0', '99999999999'],
    LOAD_JUMP_FACTOR: ['1', '0.5', '1.000', '5,5', '1e3', '-2', '5.'],
    STOP_NOTICE_MS: ['-1', '120001', 'long'],
    SHUTDOWN_TIMEOUT_MS: ['99'],
  };
  for (const [name, values] of Object.entries(bad)) {
    for (const value of values) {
      const expected = { name: 'ConfigError', message: new RegExp(`^${name}: `) };
      t.throws(() => configOf({ [name]: value }), expected, `${name}=${value.slice(0, 20)}`);
    }
  }
});

t.test('a setting that no longer exists is refused with what to set instead', async (t) => {
  for (const [name, instead] of Object.entries(REMOVED_SETTINGS)) {
    t.notOk(name in SETTINGS);
    t.throws(() => configOf({ [name]: '1' }), {
      name: 'ConfigError',
      message: `${name}: this setting no longer exists; ${instead}`,
    });
    t.doesNotThrow(() => configOf({ [name]: '' }), 'empty counts as not set');
  }
});

t.test('all invalid settings are reported together, one line each', async (t) => {
  const env = {
    PORT: 'abc',
    LOG_LEVEL: 'loud',
    JWT_SECRET: 'short',
    JWT_JWKS_URL: 'https://a/keys',
    CONCURRENT_MAX: '2',
  };
  try {
    configOf(env);
    t.fail('the settings were accepted');
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const named = error.lines.map((line) => line.slice(0, line.indexOf(':')));
    t.same(named, ['PORT', 'LOG_LEVEL', 'JWT_SECRET', 'JWT_JWKS_URL']);
    t.equal(error.message, error.lines.join('\n'));
  }
});

t.test('a level of logs that there is not is answered with those there are', async (t) => {
  const message = 'LOG_LEVEL: "loud" must be one of fatal, error, warn, info, debug, trace, silent';
  t.throws(() => configOf({ LOG_LEVEL: 'loud' }), { message: new RegExp(`^${message}`) });
});

t.test(
  'a number or an address of another form is refused in words, not by a pattern',
  async (t) => {
    t.throws(() => configOf({ PORT: 'abc' }), {
      message: /^PORT: "abc" must be a whole number \(/,
    });
    for (const DATABASE_URL of ['localhost', 'mysql://a/b']) {
      const message = /^DATABASE_URL: what is set is not an address like postgres:\/\//;
      t.throws(() => configOf({ DATABASE_URL }), { message });
    }
  },
);

t.test('good values have the type of their setting', async (t) => {
  const variables = {
    PORT: '0',
    DATABASE_URL: 'postgresql://u:p@h/d',
    LOG_LEVEL: 'silent',
    JWT_SECRET: SECRET,
    TRUST_PROXY: '10.0.0.0/8,fd00::/8,127.0.0.1,::1',
  };
  t.match(configOf(variables), { ...variables, PORT: 0 });
  for (const url of [
    'postgres://127.0.0.1/db',
    'postgres:///db',
    'postgres://me:p%40%2F%25@[::1]:5433/db?sslmode=require',
    'postgres://me@%2Frun%2Fpostgresql/db',
    'postgres://me:p,w@one:5432/db',
  ]) {
    t.equal(configOf({ DATABASE_URL: url }).DATABASE_URL, url);
  }
  for (const url of ['https://a.example/keys', 'http://localhost:8080/k', 'http://[::1]/k']) {
    t.equal(configOf({ JWT_JWKS_URL: url }).JWT_JWKS_URL, url);
  }
});

t.test('an address is shown without a secret', async (t) => {
  t.equal(databaseAddressOf('postgres://me:p,w@one:5432/db?sslmode=require'), 'one:5432/db');
});

t.test('an address that leaves the choice of the server to the process is refused', async (t) => {
  const message = /^DATABASE_URL: .*a process uses one address: let HAProxy, DNS or the endpoint/;
  for (const DATABASE_URL of [
    'postgres://me:pw@one:5432,[::1],two:5433/db',
    'postgres://one,two/db',
    'postgres:///db?host=one,two',
    'postgres://one/db?sslmode=require&target_session_attrs=primary',
  ]) {
    t.throws(() => configOf({ DATABASE_URL }), { message });
  }
});

t.test('an account without a server is refused, unless a parameter names a socket', async (t) => {
  for (const DATABASE_URL of [
    'postgres://me:pw@',
    'postgres://me@/db',
    'postgres://me:pw@/db?x=1',
  ]) {
    t.throws(() => configOf({ DATABASE_URL }), { message: /^DATABASE_URL: / }, DATABASE_URL);
  }
  const DATABASE_URL = 'postgres://me@/db?host=/run/postgresql';
  t.equal(databaseAddressOf(configOf({ DATABASE_URL }).DATABASE_URL ?? ''), '/run/postgresql/db');
});

t.test('ways to check tokens never mix', async (t) => {
  const ways = { JWT_SECRET: SECRET, JWT_PUBLIC_KEY_FILE: 'a.pem', JWT_JWKS_URL: 'https://a/k' };
  const names = Object.keys(ways) as (keyof typeof ways)[];
  for (const [at, first] of names.entries()) {
    t.ok(configOf({ [first]: ways[first] }), `${first} alone`);
    for (const second of names.slice(at + 1)) {
      t.throws(() => configOf({ [first]: ways[first], [second]: ways[second] }), ConfigError);
    }
  }
});

t.test('no message shows a secret', async (t) => {
  for (const env of [
    { JWT_SECRET: 'too short' },
    { DATABASE_URL: 'mysql://user:hunter2@host/x' },
    { DATABASE_URL: 'postgres://user:hunter2@host:x/x' },
    { DATABASE_URL: 'postgres://user:1/hunter2@host/x' },
    { DATABASE_URL: 'postgres://user:hunter2@one,two:x/x' },
    { JWT_JWKS_URL: 'https://me:hunter2@host:x/keys' },
    { JWT_SECRET: SECRET, JWT_PUBLIC_KEY_FILE: 'a.pem' },
  ]) {
    try {
      configOf(env);
      t.fail('the settings were accepted');
    } catch (error) {
      t.notMatch((error as Error).message, /too short"|hunter2|nobody may/);
    }
  }
});
