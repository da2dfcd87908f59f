import { readFileSync } from 'node:fs';
import t from 'tap';
import { MARKETS } from '../../../src/catalog/markets.ts';
import { FORMATS } from '../../../src/contract/schemas/formats.ts';
import { seededDatabase } from '../../support/database/database.ts';
import { type Service, serviceOn } from '../../support/http/service.ts';
import { parseCsv } from '../../support/prices/csv.ts';
import { parseExact } from '../../support/prices/oracle.ts';
import { differenceOf } from '../../support/prices/rows.ts';

const CSV = 'text/csv; charset=utf-8; header=present';
const NDJSON = 'application/x-ndjson; charset=utf-8';

let service: Service;
t.before(async () => {
  service = await serviceOn(t, await seededDatabase(t));
});

const ask = (slug: string, body: object, accept: string) =>
  service.request({
    method: 'POST',
    url: `/v3/prices/${slug}`,
    payload: body,
    headers: { accept },
  });

/** Options that fill every column between them. */
const EVERYTHING = {
  includeSeries: true,
  includeSummary: true,
  currency: 'EUR',
  unitOfMeasure: 'lb',
};
const MOVING = { includeSeries: true, movingAverage: 5 };
const AVERAGES = { includeSeries: true, aggregate: { period: 'quarter', method: 'average' } };
const RECENT = { dateFrom: '2026-06-01' };

t.test('the CSV of every market holds what its JSON holds, to the last digit', async (t) => {
  for (const { slug } of MARKETS) {
    for (const options of [{}, { includeSeries: true }, EVERYTHING, AVERAGES, MOVING]) {
      const body = { filters: RECENT, options };
      const json = await ask(slug, body, 'application/json');
      const csv = await ask(slug, body, 'text/csv');
      t.equal(csv.headers['content-type'], CSV);
      const difference = differenceOf(csv.text, parseExact(json.text).data);
      t.equal(difference, null, `${slug} ${JSON.stringify(options)}`);
    }
  }
});

t.test('the NDJSON of every market is the records of its JSON, byte for byte', async (t) => {
  for (const { slug } of MARKETS) {
    const body = { filters: RECENT, options: EVERYTHING };
    const json = await ask(slug, body, 'application/json');
    const ndjson = await ask(slug, body, 'application/x-ndjson');
    t.equal(ndjson.headers['content-type'], NDJSON);
    const lines = ndjson.text.split('\n');
    t.equal(lines.pop(), '', 'the last line ends too');
    const data = `"data":[${lines.join(',')}]}`;
    t.ok(json.text.endsWith(data), slug);
    t.equal(lines.length, json.json.data.length);
  }
});

t.test('the columns of a market never change; what is new goes to the end', async (t) => {
  const fixture = new URL('../../fixtures/csv-columns.json', import.meta.url);
  const released: Record<string, string> = JSON.parse(readFileSync(fixture, 'utf8'));
  t.same(Object.keys(released), MARKETS.map((each) => each.slug).slice());
  for (const [slug, columns] of Object.entries(released)) {
    for (const options of [{}, EVERYTHING, AVERAGES]) {
      const { text } = await ask(slug, { filters: { codes: ['no such'] }, options }, 'text/csv');
      t.ok(text.startsWith(columns), slug);
      t.equal(parseCsv(text).length, 1, 'and no row where there is no price');
    }
  }
});

t.test('a price without points has one row, with date and values empty', async (t) => {
  const filters = { dateFrom: '2199-01-01', codes: ['CP-NI-0001', 'CP-NI-0002'] };
  const { text } = await ask('nickel', { filters, options: { includeSeries: true } }, 'text/csv');
  const [, ...rows] = parseCsv(text);
  t.same(
    rows.map((row) => row.slice(0, 5)),
    [
      ['CP-NI-0001', '', '', '', ''],
      ['CP-NI-0002', '', '', '', ''],
    ],
  );
});

t.test('formats without $metadata have its content in headers', async (t) => {
  const filters = { regions: ['Eurpe', 'Süd “-” \u{1F30D}'], products: ['nickel briquette'] };
  const { json, headers: plain } = await ask('nickel', { filters }, 'application/json');
  t.equal(plain['x-warnings'], undefined);
  t.equal(json.$metadata.warnings.length, 2);
  for (const { media } of Object.values(FORMATS).filter(({ hasMetadata }) => !hasMetadata)) {
    const { headers } = await ask('nickel', { filters }, media);
    t.equal(headers['x-data-revision'], json.$metadata.revision);
    t.match(headers['x-warnings'], /^[\x20-\x7e]+$/);
    t.same(JSON.parse(headers['x-warnings'] ?? ''), json.$metadata.warnings);
    t.equal(headers['x-warnings-count'], '2');
    t.equal(headers['x-next-cursor'], undefined);
    t.equal(headers['cache-control'], 'no-store');
  }
});

t.test('no header grows beyond 4 KB; it contains the number of warnings', async (t) => {
  const codes = Array.from({ length: 500 }, (_, index) => `no such code ${index}`);
  const { headers } = await ask('nickel', { filters: { codes } }, 'text/csv');
  t.equal(headers['x-warnings-count'], '500');
  const warnings = headers['x-warnings'] ?? '';
  t.ok(warnings.length <= 4_096 && JSON.parse(warnings).length > 5);
});

t.test('the format is the one that the client wants most', async (t) => {
  const types: Readonly<Record<string, RegExp>> = {
    '': /json;/,
    '*/*': /json;/,
    'text/csv, */*': /csv/,
    'text/csv, application/json': /json;/,
    'application/x-ndjson, application/json;q=0.9': /ndjson/,
    'text/*, application/*;q=0.5': /csv/,
    'application/json;q=0.1, text/csv;q=0.2, application/x-ndjson;q=0.3': /ndjson/,
    'text/html, application/xhtml+xml, */*;q=0.8': /\/json;/,
    'TEXT/CSV; header=present': /csv/,
    'application/json;q=0, */*;q=0.1': /csv/,
  };
  for (const [accept, type] of Object.entries(types)) {
    const { headers } = await ask('copper', {}, accept);
    t.match(headers['content-type'], type, accept);
  }
});
