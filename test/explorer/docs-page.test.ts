import { runInNewContext } from 'node:vm';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { type Service, serviceOn } from '../support/http/service.ts';
import { addPrice, commit } from '../support/prices/sample-writes.ts';

const SCRIPT = 'http://service/docs/static/swagger-initializer.js';

interface Priced {
  readonly lastAssessedAt: string | null;
  readonly summary: { readonly latest: { readonly date: string } | null };
}

/** The options that the page's script passes to Swagger UI, for a given storage. */
async function configured(service: Pick<Service, 'app'>, storage: Map<string, string>) {
  const { body } = await service.app.inject({ url: new URL(SCRIPT).pathname });
  // biome-ignore lint/suspicious/noExplicitAny: the configuration of Swagger UI
  let config: any;
  const restored: unknown[] = [];
  const presets = { presets: { apis: {} }, plugins: { DownloadUrl: {} } };
  const ui = { authActions: { restoreAuthorization: (each: unknown) => restored.push(each) } };
  const bundle = (given: unknown) => {
    config = given;
    return ui;
  };
  runInNewContext(body, {
    URL,
    Date,
    JSON,
    document: { currentScript: { src: SCRIPT } },
    window: { addEventListener: (_name: string, start: () => void) => start() },
    sessionStorage: {
      setItem: (name: string, value: string) => storage.set(name, value),
      getItem: (name: string) => storage.get(name) ?? null,
    },
    SwaggerUIBundle: Object.assign(bundle, presets),
    SwaggerUIStandalonePreset: {},
  });
  const actions = Object.assign(
    {},
    ...config.plugins
      .filter((each: unknown) => typeof each === 'function')
      .flatMap((each: () => { statePlugins: Record<string, { wrapActions: object }> }) =>
        Object.values(each().statePlugins).map(({ wrapActions }) => wrapActions),
      ),
  );
  return { config, actions, restored };
}

t.test('"Try it out" is prefilled with a request that returns the newest values', async (t) => {
  const database = await testDatabase(t, { seeded: true });
  // Old values that were published just now, as of a file without dates of publication.
  await commit(database.pool, async (client) => {
    await addPrice(client, { code: 'OLD', currency: 'USD', unit: 'tonne', market: 'lithium' });
    await client.query(`insert into series (price_id, date, mid, published_at)
      select id, '1999-12-31', 1, now() from price where code = 'OLD'`);
  });
  const service = await serviceOn(t, database);
  const { config, actions } = await configured(service, new Map());
  t.equal(new URL(config.url).pathname, '/openapi.json');
  const { body } = await service.app.inject({ url: '/openapi.json' });
  const shown = await new Promise<string>((resolve) => actions.updateSpec(resolve)(body));
  const { paths, components } = JSON.parse(shown);
  for (const slug of ['lithium', 'nickel']) {
    const { post } = paths[`/v3/prices/${slug}`];
    const [first] = Object.values(post.requestBody.content['application/json'].examples);
    t.same(first, { $ref: '#/components/examples/NewestRequest' });
    const { status, json } = await service.post(slug, components.examples.NewestRequest.value);
    t.equal(status, 200);
    const dated = json.data.filter((each: Priced) => each.lastAssessedAt !== null);
    t.ok(dated.length > 0);
    t.ok(dated.every((each: Priced) => each.summary.latest?.date === each.lastAssessedAt));
  }
  const { dateFrom, dateTo, includeSeries, includeSummary } = components.parameters;
  for (const each of [dateFrom, dateTo, includeSeries]) t.notOk('example' in each);
  t.equal(includeSummary.example, true);
});

t.test('a request of "Try it out" carries no password that the browser remembers', async (t) => {
  const service = await serviceOn(t, await testDatabase(t));
  const { config } = await configured(service, new Map());
  const request = { url: '/v3/me', headers: { 'x-api-key': 'a' }, credentials: 'same-origin' };
  t.same(config.requestInterceptor(request), { ...request, credentials: 'omit' });
});

t.test('a credential of the page stays in its tab', async (t) => {
  const service = await serviceOn(t, await testDatabase(t));
  const storage = new Map<string, string>();
  const first = await configured(service, storage);
  t.equal(first.config.persistAuthorization, false, 'Swagger UI keeps it for every tab');
  first.config.onComplete();
  t.same(first.restored, []);
  const authorized = { api_key: { value: 'a key' } };
  const system = { authSelectors: { authorized: () => ({ toJS: () => authorized }) } };
  first.actions.persistAuthorizationIfNeeded(null, system)();
  const reloaded = await configured(service, storage);
  reloaded.config.onComplete();
  t.same(reloaded.restored, [{ authorized }]);
});
