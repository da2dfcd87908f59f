import { once } from 'node:events';
import { request } from 'node:http';
import t from 'tap';
import { tracingSettingsOf } from '../../src/config/tracing.ts';
import { withoutValues } from '../../src/tracing/tracing.ts';
import { seededDatabase } from '../support/database/database.ts';
import { keyFor } from '../support/http/service.ts';
import { until } from '../support/http/sockets.ts';
import { type Running, startService } from '../support/process/programs.ts';
import { startCollector, type TraceSpan } from './collector.ts';

const database = await seededDatabase(t);
const key = await keyFor(database, ['prices:*']);
const ENV = { DATABASE_URL: database.url, PRICE_BOOK_BYTES: '0' };
const PATH = '/v3/prices/nickel';

const SERVER = 2;
const CLIENT = 3;
const FAILED = 2;

/** Shows each module of OpenTelemetry that the service loads, or a part of it. */
const SHOW_LOADED = `
  import { registerHooks } from 'node:module';
  registerHooks({
    resolve(name, context, next) {
      const own = /node_modules.(@opentelemetry|@prometheus-io)/.test(context.parentURL);
      if (name.startsWith('@opentelemetry') && !own) console.error('loads ' + name);
      return next(name, context);
    },
  });
`;
const WATCHED = ['--import', `data:text/javascript,${encodeURIComponent(SHOW_LOADED)}`];

async function addressOf(service: Running): Promise<string> {
  const log = await service.until('stderr', /(Server listening|workers? answers?) at [^"]+/);
  return /(?:Server listening|workers? answers?) at ([^"]+)/.exec(log)?.[1] ?? '';
}

const ask = (address: string, path = PATH, headers: Record<string, string> = {}, body = {}) =>
  fetch(`${address}${path}`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

/** Requests series with a body that arrives after the headers. Returns the revision. */
async function askLate(address: string, headers: Record<string, string>): Promise<unknown> {
  const all = { 'x-api-key': key, 'content-type': 'application/json', ...headers };
  const asking = request(`${address}${PATH}`, {
    method: 'POST',
    headers: { ...all, expect: '100-continue' },
  });
  asking.flushHeaders();
  await once(asking, 'continue');
  asking.end(JSON.stringify({ options: { includeSeries: true } }));
  const [answer] = await once(asking, 'response');
  answer.resume();
  await once(answer, 'end');
  return answer.headers['x-data-revision'];
}

async function stop(service: Running): Promise<void> {
  service.child.kill('SIGTERM');
  await service.ended;
}

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';

t.test('a trace of a request has its span, those of its statements, and no value', async (t) => {
  const collector = await startCollector(t);
  const env = { ...ENV, OTEL_EXPORTER_OTLP_ENDPOINT: collector.address };
  const service = startService(t, { ...env, OTEL_SERVICE_NAME: 'prices-test' }, WATCHED);
  const address = await addressOf(service);
  const headers = {
    traceparent: `00-${TRACE}-${PARENT}-01`,
    tracestate: 'vendor=canary-state',
    baggage: 'of=canary-baggage',
    'x-request-id': 'request-0001',
    'user-agent': 'canary-agent',
  };
  const options = { includeSeries: true, dateFrom: '2025-11-03' };
  const filters = { codes: ['canary-code'] };
  const revision = await askLate(address, headers);
  await ask(address, PATH, {}, { filters, options });
  await ask(address, `/v3/${key}?canary-query=1`);
  await ask(address, PATH, { 'x-api-key': 'canary-key' });
  await stop(service);

  t.equal(await service.ended, 0);
  t.same([...collector.paths], ['POST /v1/traces']);
  t.match(service.stderr(), /loads @opentelemetry\/sdk-trace/);
  const spansOf = (wanted: number) => collector.spans().filter(({ kind }) => kind === wanted);
  await until('what is left at the end has come', () => spansOf(SERVER).length === 4);
  const requests = spansOf(SERVER);
  const [first] = requests.filter(({ traceId }) => traceId === TRACE) as [TraceSpan];
  t.match(first, {
    name: 'POST /v3/prices/nickel',
    parentSpanId: PARENT,
    attributes: {
      'http.request.method': 'POST',
      'http.route': PATH,
      'url.path': PATH,
      'http.response.status_code': 200,
      'prices.operation': 'postNickelPrices',
      'prices.request_id': 'request-0001',
      'prices.key': key.split('_')[2],
      'prices.revision': revision,
    },
    resource: { 'service.name': 'prices-test', 'process.pid': service.child.pid },
  });
  const statements = collector.spans().filter(({ parentSpanId }) => parentSpanId === first.spanId);
  t.ok(statements.length >= 3, `${statements.length} statements`);
  for (const { kind, attributes, traceId } of statements) {
    t.same([kind, traceId], [CLIENT, TRACE]);
    t.match(attributes, { 'db.system.name': 'postgresql', 'db.query.text': /\w/ });
  }
  const copies = statements.filter(({ name }) => name === 'copy');
  t.match(copies[0]?.attributes['db.query.text'], /series_at\(\?\) where price_id = any\(\?\)/);
  const refused = requests.filter(({ attributes }) => attributes['error.type'] === 'not_found');
  t.match(refused, [{ name: 'POST', attributes: { 'url.path': '/v3/[secret]' } }]);
  const all = collector.texts.join('');
  t.notMatch(all, /canary|cps_/, 'no header, query or body');
});

t.test('each worker sends its traces, and no trace that a client declines', async (t) => {
  const collector = await startCollector(t);
  const address = `${collector.address}/v1/traces`;
  const protocol = { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' };
  const env = { ...ENV, ...protocol, WORKERS: '2', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: address };
  const service = startService(t, env);
  const at = await addressOf(service);
  const answerers = (): Set<string> =>
    new Set(
      [...service.stderr().matchAll(/"pid":(\d+),.*"request completed"/g)].map(
        ([, pid = '']) => pid,
      ),
    );
  await until('both have answered', async () => {
    await ask(at, PATH, { connection: 'close' });
    return answerers().size === 2;
  });
  await ask(at, PATH, { traceparent: `00-${TRACE}-${PARENT}-00` });
  await stop(service);
  t.equal(await service.ended, 0);
  const senders = () =>
    new Set(collector.spans().map(({ resource }) => `${resource['process.pid']}`));
  await until('both have sent', () => senders().size === 2);
  t.same([...senders()].sort(), [...answerers()].sort());
  t.notOk(collector.spans().some(({ traceId }) => traceId === TRACE));
  t.match(service.stderr().match(/traces are sent to [^"]+/g), [
    `traces are sent to ${collector.address}`,
  ]);
  t.equal(service.stderr().match(/traces are sent as http.json/g)?.length, 1);
});

t.test('a collector that fails, hangs or is not there changes no answer and no stop', async (t) => {
  const [failing, silent] = [await startCollector(t, 500), await startCollector(t, null)];
  const addresses = [failing.address, silent.address, 'http://127.0.0.1:1'];
  const tried = addresses.map(async (collector) => {
    const service = startService(t, { ...ENV, OTEL_EXPORTER_OTLP_ENDPOINT: collector });
    const address = await addressOf(service);
    for (let sent = 0; sent < 100; sent += 1) {
      const answer = await ask(address, PATH, {}, { options: { includeSeries: true } });
      t.equal(answer.status, 200);
      await answer.text();
    }
    await stop(service);
    t.equal(await service.ended, 0, collector);
  });
  await Promise.all(tried);
  t.ok(failing.texts.length > 0 && silent.texts.length > 0);
});

t.test('a statement error fails the spans of statement and request', async (t) => {
  const collector = await startCollector(t);
  const env = { ...ENV, OTEL_EXPORTER_OTLP_ENDPOINT: collector.address };
  const service = startService(t, env);
  const address = await addressOf(service);
  const { pool } = database.client;
  await pool.query('alter function series_at rename to series_away');
  const options = { includeSeries: true };
  const answer = await ask(address, PATH, {}, { options });
  await pool.query('alter function series_away rename to series_at');
  t.equal(answer.status, 503);
  await stop(service);
  await until('the spans have come', () => collector.texts.length > 0);
  const failed = collector.spans().filter(({ status }) => status.code === FAILED);
  t.same(new Set(failed.map(({ kind }) => kind)), new Set([SERVER, CLIENT]));
  const [statement] = failed.filter(({ kind }) => kind === CLIENT);
  t.equal(statement?.attributes['error.type'], '42883');
});

t.test('without the setting nothing of OpenTelemetry is loaded', async (t) => {
  const unset = { OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: '' };
  const service = startService(t, { ...ENV, METRICS_PORT: '0', ...unset }, WATCHED);
  t.equal((await ask(await addressOf(service))).status, 200);
  await stop(service);
  t.notMatch(service.stderr(), /loads @opentelemetry/);
  const on = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };
  t.ok(tracingSettingsOf(on));
  for (const off of [{ OTEL_SDK_DISABLED: 'true' }, { OTEL_TRACES_EXPORTER: 'none' }]) {
    t.equal(tracingSettingsOf({ ...on, ...off }), null);
  }
});

t.test('a wrong setting of traces ends the start with its name', async (t) => {
  const wrong = [
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' },
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    { OTEL_TRACES_EXPORTER: 'zipkin' },
    { OTEL_TRACES_SAMPLER: 'sometimes' },
    { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: 'half' },
  ];
  const right = { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://secret@collector:4318/otlp' };
  for (const each of wrong) {
    const name = Object.keys(each).at(-1) ?? '';
    t.throws(() => tracingSettingsOf({ ...right, ...each }), { message: new RegExp(`^${name}:`) });
  }
  const all = { isOfParent: true, share: 1 };
  const origin = 'https://collector:4318';
  t.same(tracingSettingsOf(right), { origin, sampling: all, warning: null });
  const usual = { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf', OTEL_TRACES_EXPORTER: 'otlp' };
  t.match(tracingSettingsOf({ ...right, ...usual })?.warning, /^OTEL_\w+: .* as http\/json/);
  const some = { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.1' };
  t.match(tracingSettingsOf({ ...right, ...some }), {
    sampling: { isOfParent: false, share: 0.1 },
  });
  const service = startService(t, { ...ENV, OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' });
  t.equal(await service.ended, 2);
  t.match(service.stderr(), /OTEL_EXPORTER_OTLP_ENDPOINT: must be the address of a collector/);
});

t.test('a statement is shown with a mark for each value, and with its parameters', (t) => {
  const shown = withoutValues(
    `select "t0"."a1" from t where a = 'it''s 7' and b in (1, 2.5) and c = $12 and d = any('{3}')`,
  );
  const expected = 'select "t0"."a1" from t where a = ? and b in (?, ?) and c = $12 and d = any(?)';
  t.equal(shown, expected);
  const raw = String.raw;
  const more = raw`a = E'it\'s' and b = e'\\' and c = $q$it's $$ 7$q$ and d = $$7$$ and e = $1`;
  t.equal(withoutValues(more), 'a = ? and b = ? and c = ? and d = ? and e = $1');
  t.equal(withoutValues(`select ${'a, '.repeat(5_000)}`).length, 2_000);
  t.end();
});
