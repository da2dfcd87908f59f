import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import t from 'tap';
import { parse } from 'yaml';
import { MARKETS } from '../../src/catalog/markets.ts';
import { pascal } from '../../src/contract/schemas/market.ts';
import { OPTION_NAMES, optionOf } from '../../src/contract/schemas/options.ts';
import { SECURITY_HEADERS } from '../../src/http/request-head.ts';
import { seededDatabase } from '../support/database/database.ts';
import { faultOf } from '../support/http/conformity.ts';
import { serviceOn } from '../support/http/service.ts';
import { until } from '../support/http/sockets.ts';

const { components, paths } = parse(
  readFileSync(new URL('../../openapi.yaml', import.meta.url), 'utf8'),
);
const ajv = new Ajv2020({ strict: false });
formats.default(ajv);

/** The request headers of a GET with a credential. */
const HEADERS = ['x-request-id', 'x-min-revision', 'if-none-match'];

/** Parameters that a body lacks, or spells differently. */
const OWN: readonly string[] = [
  ...OPTION_NAMES.filter((name) => optionOf(name).address !== undefined),
  ...['format', ...HEADERS],
];

/** Parameters that show a form only: they exclude others, or are of another format or answer. */
const FORMS = [
  'codes',
  'since',
  ...OPTION_NAMES.filter((name) => optionOf(name).sample !== undefined),
];

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
  readonly description: string;
  readonly schema: { readonly type?: string; readonly examples?: readonly unknown[] };
  readonly example?: unknown;
}

const parameters: Readonly<Record<string, Parameter>> = components.parameters;

t.test('every filter and option of a market is a parameter of its GET', async (t) => {
  for (const { slug } of MARKETS) {
    const { properties: lists } = components.schemas[`${pascal(slug)}ListFilters`];
    const { codes } = components.schemas[`${pascal(slug)}CodeFilters`].properties;
    const { properties: options } = components.schemas['MassPriceOptions'];
    const all = { ...lists, codes, ...options };
    const names = paths[`/v3/prices/${slug}`].get.parameters.map(
      ({ $ref }: { $ref: string }) => $ref.split('/').at(-1) as string,
    );
    t.same(names, [...Object.keys(all), 'format', ...HEADERS], slug);
    for (const name of names.filter((each: string) => !OWN.includes(each))) {
      const { $ref, ...inline } = all[name];
      const { description, ...schema } = $ref ? components.schemas[$ref.split('/').at(-1)] : inline;
      const parameter = parameters[name];
      const { examples: _shown, ...checked } = parameter?.schema ?? {};
      t.same(checked, schema, `${slug} ${name} is checked as in a body`);
      t.equal(parameter?.description, description);
    }
  }
});

interface Operation {
  readonly parameters: readonly (Parameter & { readonly $ref?: string })[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, Response>>;
}

interface Media {
  readonly examples: Readonly<Record<string, { readonly value: object }>>;
}

interface Response {
  readonly $ref?: string;
  readonly headers: object;
}

const operations = Object.entries<Record<string, Operation>>(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
);

const isPrices = (path: string): boolean =>
  MARKETS.some(({ slug }) => path === `/v3/prices/${slug}`);

const parametersOf = (operation: Operation): readonly Parameter[] =>
  operation.parameters.map((each) =>
    each.$ref ? (parameters[each.$ref.split('/').at(-1) ?? ''] as Parameter) : each,
  );

t.test('every parameter is described and has a valid example', async (t) => {
  const filters = MARKETS.flatMap(({ slug }) =>
    Object.keys(components.schemas[`${pascal(slug)}FilterValues`].properties.data.properties),
  );
  const shown = new Set([...FORMS, ...filters]);
  for (const [key, each] of Object.entries(parameters)) {
    t.match(each, { name: key, in: /^(query|header)$/, required: false });
  }
  for (const { path, ...operation } of operations) {
    for (const { name, description, schema, example } of parametersOf(operation)) {
      t.match(description, /^[A-Z].{5,}/, `${path} ${name}`);
      t.equal(example === undefined, shown.has(name), `${path} ${name} is sent in an example`);
      const value = example ?? schema.examples?.[0];
      const { items, ...rest } = schema as { readonly items?: { readonly $ref?: string } };
      const resolved = items?.$ref ? { ...rest, items: components.schemas.FilterItem } : schema;
      t.ok(value !== undefined && ajv.validate(resolved, value), `${path} ${name}: ${value}`);
    }
  }
});

const exampleListOf = (name: string): readonly string[] =>
  (parameters[name]?.schema.examples?.[0] ?? []) as readonly string[];

t.test('the example of a filter is a value of a market, and that of codes a code', async (t) => {
  const service = await serviceOn(t, await seededDatabase(t));
  const names = new Map<string, Set<string>>();
  for (const { slug } of MARKETS) {
    const { json } = await service.request({ method: 'GET', url: `/v3/prices/${slug}/filters` });
    for (const [filter, values] of Object.entries<{ name: string }[]>(json.data)) {
      names.set(filter, new Set([...(names.get(filter) ?? []), ...values.map(({ name }) => name)]));
    }
  }
  for (const [filter, values] of names) {
    const example = exampleListOf(filter)[0] ?? '';
    t.ok(values.has(example), `${filter}: ${example}`);
  }
  const codes = exampleListOf('codes');
  const { json } = await service.post(MARKETS[0].slug, { filters: { codes } });
  t.equal(json.data.length, 1);
});

/** Headers of HTTP itself. */
const TRANSPORT = ['connection', 'content-length', 'content-type', 'date', 'transfer-encoding'];

t.test('the examples of an operation are one request, whose answer is described', async (t) => {
  const service = await serviceOn(t, await seededDatabase(t));
  await service.app.ready();
  await until(
    'the service is ready',
    async () => (await service.app.inject('/ready')).statusCode === 200,
  );
  const silent = new Set([...TRANSPORT, ...Object.keys(SECURITY_HEADERS)]);
  for (const { path, method, ...operation } of operations) {
    const own = parametersOf(operation).filter(({ example }) => example !== undefined);
    const query = new URLSearchParams(
      own
        .filter((each) => each.in === 'query')
        .flatMap(({ name, example }) =>
          [example].flat().map((each): [string, string] => [name, String(each)]),
        ),
    );
    const headers = Object.fromEntries(
      own.filter((each) => each.in === 'header').map(({ name, example }) => [name, example]),
    ) as Record<string, string>;
    const bodies = Object.values(operation.requestBody?.content ?? {}).flatMap(({ examples }) =>
      Object.values(examples),
    );
    for (const payload of bodies.length > 0 ? bodies.map(({ value }) => value) : [undefined]) {
      const url = query.size > 0 ? `${path}?${query}` : path;
      const answer = await service.request({
        method: method.toUpperCase(),
        url,
        headers,
        ...(payload && { payload }),
      });
      t.equal(answer.status, 200, `${method} ${url} ${answer.text.slice(0, 200)}`);
      const response = operation.responses[200] as Response;
      const described = response.$ref ? components.responses.Head : response;
      const unnamed = Object.keys(answer.headers).filter(
        (name) => !silent.has(name) && !(name in described.headers),
      );
      t.same(unnamed, [], `${method} ${path}`);
      t.equal(answer.headers['x-request-id'], headers['x-request-id']);
      if (!isPrices(path)) continue;
      if (answer.text !== '') t.ok(answer.json.data.length > 0, `${url} has prices`);
    }
  }
});

t.test('the headers of refusals are described', async (t) => {
  const service = await serviceOn(t, await seededDatabase(t));
  const silent = new Set([...TRANSPORT, ...Object.keys(SECURITY_HEADERS)]);
  const url = '/v3/prices/nickel';
  for (const [status, options] of [
    [400, { method: 'GET', url: `${url}?regoins=a` }],
    [401, { method: 'GET', url, headers: { 'x-api-key': '' } }],
    [401, { method: 'GET', url, headers: { 'x-api-key': 'nonsense' } }],
    [406, { method: 'GET', url, headers: { accept: 'image/png' } }],
    [413, { method: 'POST', url, payload: { filters: { codes: ['a'.repeat(200_000)] } } }],
    [415, { method: 'POST', url, payload: 'a', headers: { 'content-type': 'text/plain' } }],
  ] as const) {
    const answer = await service.request(options);
    t.equal(answer.status, status);
    const { headers } = components.responses[`Refusal${status}`];
    const unnamed = Object.keys(answer.headers).filter(
      (name) => !silent.has(name) && !(name in headers),
    );
    t.same(unnamed, [], `${status}`);
  }
});

t.test('NDJSON with warnings as rows is as described: warnings are its last lines', async (t) => {
  const service = await serviceOn(t, await seededDatabase(t));
  const query = 'regions=Europe&regions=Nowhere&format=ndjson';
  const url = `/v3/prices/nickel?${query}`;
  const { text } = await service.request({ method: 'GET', url: `${url}&warnings=row` });
  t.match(text.split('\n').at(-2), /^\{"warning":\{"code":"unmatched_value",/);
  const { headers } = await service.request({ method: 'GET', url });
  const misplaced = { statusCode: 200, headers, body: text };
  t.match(faultOf('GET', url, misplaced), /must NOT have additional properties/);
  const swapped = { ...misplaced, body: `${text.split('\n').reverse().slice(1).join('\n')}\n` };
  t.match(faultOf('GET', `${url}&warnings=row`, swapped), /must have required property/);
});
