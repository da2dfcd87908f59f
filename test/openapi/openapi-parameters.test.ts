import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import t from 'tap';
import { parse } from 'yaml';
import { MARKETS } from '../../src/catalog/markets.ts';
import { pascal } from '../../src/contract/schemas/market.ts';
import { seededDatabase } from '../support/database/database.ts';
import { serviceOn } from '../support/http/service.ts';

const { components, paths } = parse(
  readFileSync(new URL('../../openapi.yaml', import.meta.url), 'utf8'),
);
const ajv = new Ajv2020({ strict: false });
formats.default(ajv);

/** Values that a query string spells differently from a body. */
const WRITTEN = ['aggregate', 'format'];

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
  readonly description: string;
  readonly schema: { readonly type: string; readonly description?: string };
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
    t.same(names, [...Object.keys(all), 'format'], slug);
    for (const name of names.filter((each: string) => !WRITTEN.includes(each))) {
      const { $ref, ...inline } = all[name];
      const { description, ...schema } = $ref ? components.schemas[$ref.split('/').at(-1)] : inline;
      const parameter = parameters[name];
      t.same(parameter?.schema, schema, `${slug} ${name} is checked as in a body`);
      t.equal(parameter?.description, description);
    }
  }
});

t.test('every parameter is optional and described, and its example is valid', async (t) => {
  for (const [key, each] of Object.entries(parameters)) {
    t.match(each, { name: key, in: 'query', required: false, description: /^[A-Z].{5,}/ });
    if (each.example !== undefined) t.ok(ajv.validate(each.schema, each.example), key);
  }
});

t.test('the examples are one request together, as the documentation page sends it', async (t) => {
  const service = await serviceOn(t, await seededDatabase(t));
  const withExample = Object.values(parameters).filter(({ example }) => example !== undefined);
  const query = withExample.map(({ name, example }) => `${name}=${example}`).join('&');
  t.match(query, /includeSeries=true/);
  for (const { slug } of MARKETS) {
    const { status, json } = await service.request({
      method: 'GET',
      url: `/v3/prices/${slug}?${query}`,
    });
    t.equal(status, 200, slug);
    const points = json.data.flatMap(({ series }: { series: unknown[] }) => series);
    t.ok(points.length > 0, slug);
  }
});
