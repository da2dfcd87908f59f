import { existsSync } from 'node:fs';
import t from 'tap';
import { misspeltSettings } from '../../src/config/environment.ts';
import { SETTINGS } from '../../src/config/settings.ts';
import { dataFolder, startService } from '../support/process/programs.ts';

/** Environment variables of systems, tools and other programs. */
const OF_OTHERS = `PATH HOME HOSTNAME HOSTTYPE PWD OLDPWD USER LOGNAME SHELL SHLVL TERM EDITOR LANG
  LC_ALL TMPDIR TEMP MAIL DISPLAY SSH_AUTH_SOCK XDG_DATA_DIRS XDG_DATA_HOME HISTFILE PORTAGE_DIR
  PGHOST PGPORT PGUSER PGPASSWORD PGDATABASE PGDATA PGSSLMODE PGCONNECT_TIMEOUT POSTGRES_PASSWORD
  NODE_ENV NODE_OPTIONS NODE_EXTRA_CA_CERTS npm_config_loglevel npm_package_name npm_lifecycle_event
  OTEL_LOG_LEVEL OTEL_SERVICE_NAME OTEL_EXPORTER_OTLP_ENDPOINT OTEL_METRICS_EXPORTER http_proxy
  NO_PROXY KUBERNETES_PORT KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT API_PORT_80_TCP_PORT
  DOCKER_HOST AWS_REGION AWS_ACCESS_KEY_ID GOOGLE_APPLICATION_CREDENTIALS CI GITHUB_TOKEN
  DB_URL DB_HOST DATABASE_USER DATABASE_HOST DATABASE_PORT TEST_DATABASE_URL REDIS_URL SMTP_PORT
  SERVICE_PASSWORD KEYS_PASSWORD LOADER_PASSWORD SEED WORKSPACE LOG_FORMAT SSL_CERT_DIR`
  .trim()
  .split(/\s+/);

const misspelt = (...names: string[]): string[] =>
  misspeltSettings(Object.fromEntries(names.map((name) => [name, '1']))).map(
    ({ given, meant }) => `${given} ${meant}`,
  );

t.test('a name that is nearly a setting is taken for it, and no other name is', async (t) => {
  const wrong = {
    RATE_PER_MINUT: 'RATE_PER_MINUTE',
    DATABASE_ULR: 'DATABASE_URL',
    DATABASE_URI: 'DATABASE_URL',
    DATABASE_CONNECTIONS: 'DATABASE_CONNECTIONS_MAX',
    REQUEST_TIMEOUT: 'REQUEST_TIMEOUT_MS',
    JWT_SECRETS: 'JWT_SECRET',
    LOG_LEVLE: 'LOG_LEVEL',
    PORTS: 'PORT',
    PROT: 'PORT',
    port: 'PORT',
  };
  for (const [given, meant] of Object.entries(wrong)) {
    t.same(misspelt(given), [`${given} ${meant}`]);
  }
  t.same(misspelt(...OF_OTHERS), []);
  t.same(misspelt(...Object.keys(SETTINGS)), []);
  t.same(misspeltSettings({ PORTS: '' }), [], 'an empty one counts as not set');
});

t.test('a start reports a misspelt setting once, and not its value', async (t) => {
  const env = { DATABASE_URL: 'postgres://127.0.0.1:1/none', RATE_PER_MINUT: 'hunter2' };
  const service = startService(t, env);
  await service.until('stderr', /listening at/);
  service.child.kill('SIGTERM');
  await service.ended;
  const warnings = service.stderr().match(/RATE_PER_MINUT [^"]*/g);
  t.same(warnings, [
    'RATE_PER_MINUT is not a setting of the service; did you mean RATE_PER_MINUTE?',
  ]);
  t.notMatch(service.stderr(), 'hunter2');
});

t.test('each of several unusable settings has a line', async (t) => {
  const service = startService(t, { PORT: 'abc', LOG_LEVEL: 'loud', DATABASE_URL: 'mysql://a/b' });
  t.equal(await service.ended, 2);
  const lines = service.stderr().trimEnd().split('\n');
  t.match(lines, [/: PORT: "abc"/, /: DATABASE_URL: /, /: LOG_LEVEL: "loud"/]);
  t.equal(lines.length, 3);
});

t.test('a misspelt DATABASE_URL starts no service on an embedded database', async (t) => {
  const DATA_DIR = await dataFolder(t);
  for (const name of ['DATABASE_ULR', 'DATABASE_URL_FIEL']) {
    const service = startService(t, { DATA_DIR, [name]: 'hunter2' });
    t.equal(await service.ended, 2);
    t.match(
      service.stderr(),
      new RegExp(`^commodity-prices: ${name} is not a setting [^\\n]+\\n$`),
    );
  }
  t.notOk(existsSync(DATA_DIR));
});
