import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import t from 'tap';
import { parse } from 'yaml';
import { DIMENSIONS } from '../../src/catalog/dimensions.ts';
import { MARKETS } from '../../src/catalog/markets.ts';
import { OPERATIONS } from '../../src/contract/schemas/changes.ts';
import { PROBLEMS, VIOLATIONS, WARNINGS } from '../../src/errors.ts';
import { closedDocument } from '../support/http/conformity.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const COMMITTED = await readFile(`${ROOT}openapi.yaml`, 'utf8');
// biome-ignore lint/suspicious/noExplicitAny: the tests read the untyped document.
const document: any = parse(COMMITTED);

/** `lithium-ion-battery` → `LithiumIonBattery`, as the contract names components. */
const named = (slug: string) =>
  slug
    .split('-')
    .map((part) => part[0]?.toUpperCase() + part.slice(1))
    .join('');

// biome-ignore lint/suspicious/noExplicitAny: as above.
type Operation = any;
const operations: [path: string, method: string, operation: Operation][] = Object.entries(
  document.paths,
).flatMap(([path, methods]) =>
  Object.entries(methods as object).map(([method, operation]): [string, string, Operation] => [
    path,
    method,
    operation,
  ]),
);

// biome-ignore lint/suspicious/noExplicitAny: as above.
const resolved = (value: any): any =>
  typeof value?.$ref === 'string'
    ? value.$ref
        .slice(2)
        .split('/')
        // biome-ignore lint/suspicious/noExplicitAny: as above.
        .reduce((at: any, name: string) => at[name], document)
    : value;

/** Runs a script with the Node of the tests; fails when it does. */
const run = async (...args: string[]): Promise<string> => {
  const quiet = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  const options = { cwd: ROOT, env: { ...process.env, ...quiet }, maxBuffer: 16_777_216 };
  return (await promisify(execFile)(process.execPath, args, options)).stdout;
};

t.test('openapi.yaml is what the routes make', async (t) => {
  const yaml = await run('src/cli/main.ts', 'openapi');
  t.equal(yaml === COMMITTED, true, 'no drift: npm run generate writes the file again');
  const json = await run('src/cli/main.ts', 'openapi', '--json');
  t.same(JSON.parse(json), document, 'JSON and YAML say the same');
});

t.test('the document has no error and no warning under the recommended rules', async (t) => {
  const redocly = 'node_modules/@redocly/cli/bin/cli.js';
  const stdout = await run(redocly, 'lint', 'openapi.yaml', '--format=json');
  const { totals, problems } = JSON.parse(stdout);
  t.same(problems, []);
  t.match(totals, { errors: 0, warnings: 0 });
});

t.test('the document has version, server and full paths', async (t) => {
  t.equal(document.openapi, '3.1.0');
  t.equal(document.info.version, '1.0.0');
  t.same(document.servers, [{ url: 'http://127.0.0.1:3000' }], 'the default of PUBLIC_URL');
  const expected = [
    ...MARKETS.flatMap(({ slug }) =>
      ['post @', 'get @', 'get @/filters'].map((each) => each.replace('@', `/v3/prices/${slug}`)),
    ),
    ...['/v3/prices', '/v3/prices/health', '/health', '/live', '/ready'].map((at) => `get ${at}`),
    ...['currencies', 'units', 'rates'].map((name) => `get /v3/reference/${name}`),
    ...['/v3/changes', '/v3/calendar', '/v3/search', '/v3/me'].map((at) => `get ${at}`),
    'post /v3/calculations',
    ...['/openapi.json', '/openapi.yaml', '/llms.txt'].map((at) => `get ${at}`),
  ];
  const heads = expected
    .filter((each) => each.startsWith('get '))
    .map((each) => each.replace('get', 'head'));
  const all = operations.map(([path, method]) => `${method} ${path}`);
  t.same(all.sort(), [...expected, ...heads].sort());
});

t.test('every operation has an id of its own, a summary and a description', async (t) => {
  const ids = operations.map(([, , operation]) => operation.operationId);
  t.equal(new Set(ids).size, operations.length);
  for (const [path, , { operationId, summary, description, tags }] of operations) {
    t.match(operationId, /^[a-z][A-Za-z]+$/, path);
    t.ok(summary.length > 3 && summary.length < 80 && !summary.endsWith('.'), `${path}: summary`);
    t.match(description, /^[A-Z].{20,}[.]$/s, `${path}: description`);
    t.equal(tags.length, 1);
    t.ok(document.tags.some((tag: { name: string }) => tag.name === tags[0]));
  }
});

t.test('every operation says which credentials and which scope open it', async (t) => {
  t.match(document.components.securitySchemes, {
    api_key: { type: 'apiKey', in: 'header', name: 'x-api-key' },
    bearerAuth: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
    calendar_token: { type: 'apiKey', in: 'query', name: 'token' },
  });
  const either = (scopes: string[]) => [{ api_key: scopes }, { bearerAuth: scopes }];
  for (const [path, , { security }] of operations) {
    const slug = /^\/v3\/prices\/([a-z-]+)/.exec(path)?.[1];
    if (
      ['/v3/prices', '/v3/search', '/v3/me', '/v3/calculations'].includes(path) ||
      path.startsWith('/v3/reference/')
    ) {
      t.same(security, either([]), path);
    } else if (path === '/v3/changes') {
      const names = [...MARKETS.map((each) => each.slug), '*'];
      const anyOf = names.flatMap((name) => either([`prices:${name}`]));
      t.same(security, anyOf, path);
    } else if (path === '/v3/calendar') {
      const names = [...MARKETS.map((each) => each.slug), '*'];
      const anyOf = names.flatMap((name) => either([`prices:${name}`]));
      t.same(security, [...anyOf, { calendar_token: [] }], path);
    } else if (slug && slug !== 'health') t.same(security, either([`prices:${slug}`]), path);
    else t.same(security, [], path);
  }
});

t.test('every operation lists every status that it can answer', async (t) => {
  const any = '400 408 414 431 500';
  const secured = `${any} 401 406 429 503 504`;
  const expected = (path: string, method: string): string => {
    if (method === 'head') {
      const isTagged = document.paths[path].get.responses[304] !== undefined;
      return `200 ${isTagged ? '304 ' : ''}4XX 5XX`;
    }
    const isTagged = path === '/v3/calculations';
    if (method === 'post') return `200 ${isTagged ? '304 ' : ''}${secured} 403 413 415`;
    if (path === '/v3/calendar') return `200 304 ${secured} 403`;
    if (path === '/v3/changes') return `200 204 ${secured} 403`;
    if (/^\/v3\/prices\/(?!health)/.test(path)) return `200 304 ${secured} 403`;
    if (/^\/v3\/(prices$|search$|reference\/)/.test(path)) return `200 304 ${secured}`;
    if (path === '/v3/me') return `200 ${secured}`;
    if (path === '/live') return `200 ${any}`;
    if (/^\/(openapi\.|llms\.txt)/.test(path)) return `200 304 ${any} 503`;
    return `200 ${any} 503`;
  };
  for (const [path, method, { responses }] of operations) {
    t.same(Object.keys(responses).sort(), expected(path, method).split(' ').sort(), path);
  }
});

t.test('every answer describes its headers', async (t) => {
  for (const [path, method, operation] of operations) {
    for (const [status, response] of Object.entries(operation.responses)) {
      const { headers, description } = resolved(response);
      t.ok(description.length > 5);
      if (method === 'head') {
        t.same(Object.keys(headers).sort(), Object.keys(document.components.headers).sort());
        continue;
      }
      const names = Object.keys(headers);
      t.ok(names.includes('x-request-id'), `${path} ${status}`);
      t.equal(names.includes('retry-after'), /429|503/.test(status), `${path} ${status}`);
      t.equal(names.includes('x-next-seq'), /changes$/.test(path) && /^20/.test(status));
      t.equal(names.includes('www-authenticate'), /40[13]/.test(status), `${path} ${status}`);
      const isPage =
        method === 'get' && status === '200' && /^\/v3\/prices\/(?!health)[^/]+$/.test(path);
      t.equal(names.includes('link'), isPage, `${path} ${status} link`);
      const isTagged = operation.responses[304] !== undefined && /200|304/.test(status);
      t.equal(names.includes('etag'), isTagged, `${path} ${status} etag`);
      for (const header of Object.values(headers)) t.ok(resolved(header).description.length > 5);
    }
  }
});

const ajv = new Ajv2020({ strict: false, allErrors: true });
formats.default(ajv);
ajv.addSchema({ $id: 'document', ...closedDocument(document) });

/** The fault of a value by a schema of the document; null for none. */
function faultOf(schema: { readonly $ref?: string }, value: unknown): string | null {
  const validate = schema.$ref ? ajv.getSchema(`document${schema.$ref}`) : ajv.compile(schema);
  if (!validate) return `no schema ${schema.$ref}`;
  return validate(value) ? null : ajv.errorsText(validate.errors);
}

/** True for an answer of which only the first market has an example. */
const isShownOnce = (path: string, type: string): boolean =>
  path.startsWith('/v3/prices/') &&
  !path.startsWith('/v3/prices/health') &&
  !new RegExp(`/${MARKETS[0].slug}(/|$)`).test(path) &&
  (path.endsWith('/filters') || type !== 'application/json');

/** A file has no example in a document of text. */
const isFile = (type: string): boolean => /^application\/vnd\.(apache|openxmlformats)/.test(type);

t.test('every request and every answer has an example that validates', async (t) => {
  const examplesOf = (media: Operation): unknown[] =>
    media.examples
      ? Object.values(media.examples).map((each) => resolved(each).value)
      : [media.example];
  const media = operations.flatMap(([path, method, operation]) =>
    [operation.requestBody, ...Object.values(operation.responses)].flatMap((body) =>
      Object.entries<Operation>(resolved(body)?.content ?? {})
        .filter(([type]) => !isShownOnce(path, type) && !isFile(type))
        .map(([, each]): [string, Operation] => [`${method} ${path}`, each]),
    ),
  );
  t.ok(media.length > 200, `${media.length} media types`);
  const faults = media.flatMap(([where, each]) =>
    examplesOf(each).map((example) => {
      if (example === undefined) return `${where}: no example`;
      const fault = faultOf(each.schema, example);
      return fault && `${where}: ${fault}`;
    }),
  );
  t.same(faults.filter(Boolean), []);
  for (const values of document.components.schemas.FilterValues.examples) {
    t.equal(faultOf({ $ref: '#/components/schemas/FilterValues' }, values), null);
  }
});

/**
 * 484,714 bytes for 17 markets, and 5 %. A ninth is the HEAD operations, and a fifteenth the
 * headers that each operation lists: a document cannot share a list of parameters or headers.
 */
const BYTES_PER_MARKET_MAX = (1.05 * 484_714) / 17;

t.test('the document is small enough to be read at once', async (t) => {
  const bytes = Buffer.byteLength(JSON.stringify(document));
  t.ok(bytes <= MARKETS.length * BYTES_PER_MARKET_MAX, `${bytes} bytes`);
});

t.test('the example of each market shows its dimensions and uses its filters', async (t) => {
  for (const market of MARKETS) {
    const operation = document.paths[`/v3/prices/${market.slug}`].post;
    const { examples } = operation.requestBody.content['application/json'];
    t.ok(
      Object.keys(resolved(examples.plain).value.filters).some((name) =>
        (market.filters as readonly string[]).includes(name),
      ),
    );
    const answers = operation.responses[200].content['application/json'].examples;
    for (const { value } of Object.values(answers).map(resolved)) {
      const [record] = value.data;
      t.ok(market.filters.every((name) => record[DIMENSIONS[name].field] !== undefined));
      t.match(record.code, new RegExp(`^CP-${market.prefix}-`));
    }
  }
});

t.test('components have the names of the contract', async (t) => {
  const { schemas } = document.components;
  for (const { slug, filters } of MARKETS) {
    const market = named(slug);
    for (const part of [
      'Filters',
      'CodeFilters',
      'ListFilters',
      'PriceRequest',
      'PriceRecord',
      'PriceResponse',
    ]) {
      t.ok(schemas[`${market}${part}`], `${market}${part}`);
    }
    t.same(
      Object.keys(schemas[`${market}ListFilters`].properties).sort(),
      [
        ...['dateFrom', 'dateTo', 'codes', 'products', 'priceCategories', 'priceTypes'],
        ...filters,
      ].sort(),
      `${slug} takes exactly its filters`,
    );
  }
  for (const name of [
    'MassPriceOptions',
    'Problem',
    'Violation',
    'Point',
    'Product',
    'Currency',
    'UnitOfMeasure',
  ]) {
    t.ok(schemas[name], name);
  }
  t.notOk(
    Object.keys(schemas).some((name) => /^def-/.test(name)),
    'none is nameless',
  );
});

t.test(
  'the schema of a request refuses codes beside other filters, as the service does',
  async (t) => {
    for (const { slug } of MARKETS) {
      const ajv = new Ajv2020({ strict: false, allErrors: true });
      formats.default(ajv);
      ajv.addSchema({ $id: 'openapi', ...document });
      const place = `openapi#/components/schemas/${named(slug)}PriceRequest`;
      const isLegal = (filters: object) => ajv.validate({ $ref: place }, { filters });
      const dates = { dateFrom: '2026-01-01', dateTo: '2026-01-02' };
      for (const filters of [
        {},
        dates,
        { codes: ['a'], ...dates },
        { regions: ['a'], products: ['b'], ...dates },
        { codes: ['a'], regions: [] },
        { regions: [] },
      ]) {
        t.ok(isLegal(filters), `${slug} ${JSON.stringify(filters)}`);
      }
      for (const filters of [
        { codes: ['a'], regions: ['b'] },
        { codes: ['a'], products: ['b'], ...dates },
        { codes: [] },
        { codes: [], regions: ['b'] },
        { regoins: ['b'] },
      ]) {
        t.notOk(isLegal(filters), `${slug} ${JSON.stringify(filters)}`);
      }
    }
  },
);

t.test('the schema of a change knows by its operation what was and is there', async (t) => {
  const { discriminator, oneOf } = document.components.schemas['Change'] as unknown as {
    discriminator: { mapping: Record<string, string> };
    oneOf: { $ref: string }[];
  };
  t.same(Object.keys(discriminator.mapping), OPERATIONS);
  t.same(
    Object.values(discriminator.mapping),
    oneOf.map(({ $ref }) => $ref),
  );
});

/** The schemas below a value of the document, with those that it refers to, by their places. */
function schemasBelow(value: unknown, place: string, found = new Map<string, Operation>()) {
  if (typeof value !== 'object' || value === null) return found;
  const { $ref, examples: _shown, example: _one, ...inner } = value as Operation;
  if (typeof $ref === 'string' && !found.has($ref)) {
    found.set($ref, resolved(value));
    schemasBelow(resolved(value), $ref, found);
  } else if ('type' in inner || 'properties' in inner) found.set(place, inner);
  for (const [name, each] of Object.entries(inner)) schemasBelow(each, `${place}/${name}`, found);
  return found;
}

const isObject = ({ type, properties }: Operation): boolean =>
  type === 'object' || typeof properties === 'object';

t.test('requests are closed to unknown members, and answers are open to new ones', async (t) => {
  const parts = (pick: (operation: Operation) => unknown) =>
    [
      ...schemasBelow(
        operations.map(([, , operation]) => pick(operation)),
        '',
      ),
    ].filter(([, schema]) => isObject(schema));
  const requests = parts(({ parameters, requestBody }) => [parameters, requestBody]);
  // A map of named members is closed by the schema of each.
  const isClosed = ({ additionalProperties: more }: Operation): boolean =>
    more === false || typeof more?.$ref === 'string';
  t.same(
    requests.filter(([, schema]) => !isClosed(schema)),
    [],
  );
  t.ok(requests.length > 3 * MARKETS.length, `${requests.length} objects of requests`);
  const answers = parts(({ responses }) => responses);
  t.same(
    answers.filter(([, { additionalProperties }]) => additionalProperties === false),
    [],
  );
  t.ok(answers.length > 4 * MARKETS.length, `${answers.length} objects of answers`);
});

t.test('the codes of answers are texts, whose known values are listed', async (t) => {
  const { Problem, Violation, Warning } = document.components.schemas;
  for (const [schema, codes] of [
    [Problem, PROBLEMS],
    [Violation, VIOLATIONS],
    [Warning, WARNINGS],
  ]) {
    const known = { type: 'string', 'x-extensible-enum': Object.keys(codes) };
    t.same(schema.properties.code, known);
  }
});

t.test('shapes that stop code generators are absent', async (t) => {
  const { EmptyFilter, Me, WithdrawnChange } = document.components.schemas;
  t.same(EmptyFilter.items, { type: 'string' });
  t.same(Me.properties.kind.enum, ['key', 'token']);
  t.same(WithdrawnChange.properties.before, { $ref: '#/components/schemas/WithdrawnValue' });
  const schemas = [...schemasBelow(document, '')];
  const faults = schemas.filter(
    ([, { type, items, not, anyOf }]) =>
      (type === 'array' && items === undefined) ||
      not !== undefined ||
      anyOf?.every((each: Operation) => 'const' in each),
  );
  t.same(faults, [], 'no list without items, no negation, no union of constants');
});

t.test('every error code is listed, with its status and its meaning', async (t) => {
  const { description } = document.info;
  for (const [code, [status, title]] of Object.entries(PROBLEMS)) {
    t.ok(description.includes(`| \`${code}\` | ${status} | ${title} |`), code);
    const { content } = document.components.responses[`Refusal${status}`] ?? { content: null };
    if (content) t.ok(content['application/problem+json'].examples[code], `example of ${code}`);
    else t.ok([404, 405].includes(status), `${status} answers no address of the document`);
  }
  for (const [code, meaning] of Object.entries(VIOLATIONS)) {
    t.ok(description.includes(`| \`${code}\` | ${meaning} |`), code);
  }
});
