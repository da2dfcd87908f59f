import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import t from 'tap';
import { parse } from 'yaml';
import { json, scriptedServer } from '../clients/scripted-server.ts';
import { seededDatabase } from '../support/database/database.ts';
import { blockOf } from '../support/docs/blocks.ts';
import { addressOf } from '../support/http/address.ts';
import { serviceOn } from '../support/http/service.ts';

type Rows = readonly Readonly<Record<string, unknown>>[];

const service = await serviceOn(t, await seededDatabase(t));
const address = await addressOf(service.app);

const GRAFANA = 'docs/recipes/grafana.md';
const OPENBB = 'docs/recipes/openbb.md';

/** The values that Grafana substitutes for its variables. */
const MACROS: Readonly<Record<string, string>> = {
  '${__from:date:YYYY-MM-DD}': '2026-06-01',
  '${__to:date:YYYY-MM-DD}': '2026-06-30',
};

/** The types of a column of the Infinity data source, and the values that it can read. */
const READABLE: Readonly<Record<string, (value: unknown) => boolean>> = {
  timestamp: (value) => /^\d{4}-\d\d-\d\d$/.test(String(value)),
  number: (value) => typeof value === 'number',
  string: (value) => typeof value === 'string',
};

t.test('the query for Grafana is answered with its columns', async (t) => {
  const query = JSON.parse(blockOf(GRAFANA, 'json'));
  const [source] = parse(blockOf(GRAFANA, 'yaml')).datasources;
  t.same(query.datasource, { type: source.type, uid: source.uid });
  t.ok(source.jsonData.allowedHosts.includes(new URL(query.url).origin));
  t.equal(source.jsonData.apiKeyType, 'header');

  const headers = { [source.jsonData.apiKeyKey]: service.key };
  const url = new URL(query.url);
  for (const { key, value } of query.url_options.params) {
    url.searchParams.append(key, MACROS[value] ?? value);
  }
  t.notMatch(url.search, /%24/, 'every variable of Grafana has a value');
  const { method } = query.url_options;
  const answer = await fetch(`${address}${url.pathname}${url.search}`, { method, headers });
  t.equal(answer.status, 200);
  const rows = (await answer.json()) as Rows;
  t.ok(rows.length > 10);
  for (const { selector, type } of query.columns) {
    t.ok(
      rows.every((row) => READABLE[type]?.(row[selector])),
      `${selector} is a ${type}`,
    );
  }
  t.same(new Set(rows.map((row) => `${row['currency']} ${row['unitOfMeasure']}`)).size, 1);
  const check = new URL(source.jsonData.customHealthCheckUrl);
  t.equal((await fetch(`${address}${check.pathname}`, { headers })).status, 200);
});

/** Starts the backend for OpenBB as its page shows it. Returns its address. */
async function startBackend(from = address): Promise<string> {
  const child = spawn('python3', ['-c', blockOf(OPENBB, 'python')], {
    env: { PATH: process.env['PATH'], COMMODITY_PRICES_URL: from, PORT: '0' },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  t.teardown(() => child.kill());
  const [line] = await once(createInterface(child.stdout), 'line');
  return line;
}

t.test('the backend for OpenBB serves each widget with its columns', async (t) => {
  const backend = await startBackend();
  const headers = { 'x-api-key': service.key };
  const listed = await fetch(`${backend}/widgets.json`);
  t.equal(listed.headers.get('access-control-allow-origin'), 'https://pro.openbb.co');
  const widgets = (await listed.json()) as Record<string, Widget>;
  t.equal(Object.keys(widgets).length, 4);
  for (const [name, { endpoint, params, data }] of Object.entries(widgets)) {
    const query = new URLSearchParams(
      params.map((each): [string, string] => [each.paramName, each.value]),
    );
    const answer = await fetch(`${backend}/${endpoint}?${query}`, { headers });
    t.equal(answer.status, 200, name);
    const rows = (await answer.json()) as Rows;
    t.ok(rows.length > 5, name);
    for (const { field } of data.table.columnsDefs) t.ok(field in (rows[0] ?? {}), field);
  }
  const preflight = await fetch(`${backend}/widgets.json`, { method: 'OPTIONS' });
  t.equal(preflight.headers.get('access-control-allow-headers'), 'x-api-key');
  const refused = await fetch(`${backend}/v3/prices/nickel?`, { headers: { 'x-api-key': 'x' } });
  t.equal(refused.status, 401);
  t.equal((await fetch(`${backend}/v3/me`, { headers })).status, 404);
});

interface Widget {
  readonly endpoint: string;
  readonly params: readonly { paramName: string; value: string }[];
  readonly data: { table: { columnsDefs: readonly { field: string }[] } };
}

t.test('the backend for OpenBB sends the key to no other address', async (t) => {
  const other = await scriptedServer(t, [json([])]);
  const moved = await scriptedServer(t, [json('', { location: other.url }, 302)]);
  const backend = await startBackend(moved.url);
  const headers = { 'x-api-key': service.key };
  const answer = await fetch(`${backend}/v3/prices/nickel`, { headers, redirect: 'manual' });
  t.equal(answer.status, 302);
  t.same([moved.requests(), other.requests()], [1, 0]);
});
