import { readFile } from 'node:fs/promises';
import t from 'tap';
import { FORMAT_NAMES } from '../../src/ingest/formats/formats.ts';
import { USGS_SERIES } from '../../src/ingest/formats/usgs-series.ts';
import { shippedMapping } from '../../src/ingest/mapping/table.ts';
import { LOAD_ERRORS } from '../../src/ingest/records/load-error.ts';
import { ATTRIBUTES, POINT_FIELDS } from '../../src/ingest/records/source-record.ts';
import { loadingDatabase, loadText } from './support/loading.ts';

const page = await readFile(new URL('../../docs/loading.md', import.meta.url), 'utf8');

/** The code examples of a language, in page order. */
const examples = (language: string): string[] =>
  [...page.matchAll(new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 'gs'))].map(
    ([, text]) => text ?? '',
  );

t.test('the documentation names every format, price and error that a load knows', async (t) => {
  for (const name of FORMAT_NAMES) t.match(page, `load ${name}`);
  const { prices = [] } = shippedMapping(
    new URL('../../src/ingest/formats/worldbank.yaml', import.meta.url),
  ).mapping;
  for (const { code } of prices) t.match(page, `\`${code}\``);
  // A table row may name a span of codes by its first and last.
  const spanned = page.replace(/`(CP-\w+-)(\d+)` to `\1(\d+)`/g, (_, start, first, last) =>
    Array.from({ length: last - first + 1 }, (_, at) => `\`${start}${+first + at}\``).join(),
  );
  for (const { code } of USGS_SERIES) t.match(spanned, `\`${code}\``);
  const documented = [...page.matchAll(/^\| `([a-z_]+)` \| (.*) \|$/gm)].map(([, code, text]) => [
    code,
    text,
  ]);
  t.strictSame(
    documented.filter(([code = '']) => code.includes('_') || code in LOAD_ERRORS),
    Object.entries(LOAD_ERRORS),
  );
});

t.test('the documentation names every column, dimensions by example', async (t) => {
  const dimensions = ['purity', 'incoterm', 'region'];
  const own = ATTRIBUTES.slice(0, ATTRIBUTES.indexOf('specification') + 1);
  for (const column of [...POINT_FIELDS, ...own, ...dimensions]) t.match(page, `\`${column}\``);
});

t.test(
  'the examples of the documentation can be loaded as they stand, in their order',
  async (t) => {
    const { client } = await loadingDatabase(t);
    const [described = '', onlyPoints = ''] = examples('csv');
    const first = await loadText(t, client, 'csv', described);
    t.match(first, { status: 'applied', counts: { inserted: 2, pricesAdded: 1 } });
    const second = await loadText(t, client, 'csv', onlyPoints);
    t.match(second, { status: 'applied', counts: { inserted: 2, pricesAdded: 0 } });
    const [ndjson = ''] = examples('ndjson');
    const third = await loadText(t, client, 'ndjson', ndjson);
    t.match(third, { status: 'applied', counts: { inserted: 1, pricesAdded: 1 } });
  },
);
