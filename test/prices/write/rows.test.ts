import t from 'tap';
import { MARKETS } from '../../../src/catalog/markets.ts';
import { textCell } from '../../../src/std/csv.ts';
import { seededDatabase, testDatabase } from '../../support/database/database.ts';
import { type Service, serviceOn } from '../../support/http/service.ts';
import { csvRecords, parseCsv } from '../../support/prices/csv.ts';
import { parseExact } from '../../support/prices/oracle.ts';
import { addPrice, commit, putPoints } from '../../support/prices/sample-writes.ts';

const ROWS = 'application/json;profile=rows';
const RECENT = { dateFrom: '2026-06-01' };
const EVERYTHING = {
  includeSeries: true,
  includeSummary: true,
  currency: 'EUR',
  unitOfMeasure: 'lb',
};
const MOVING = { includeSeries: true, movingAverage: 5 };
const AVERAGES = { includeSeries: true, aggregate: { period: 'quarter', method: 'average' } };
const OPTIONS = [{}, { includeSeries: true }, EVERYTHING, AVERAGES, MOVING];

/** The service with the price book, and without. */
let services: readonly Service[];
let service: Service;
t.before(async () => {
  const database = await seededDatabase(t);
  service = await serviceOn(t, database);
  services = [service, await serviceOn(t, database, { PRICE_BOOK_BYTES: '0' })];
});

const ask = (slug: string, body: object, accept = 'application/json', from = service) =>
  from.request({ method: 'POST', url: `/v3/prices/${slug}`, payload: body, headers: { accept } });

/** Sends a request without the openapi.yaml check, which reads each line of NDJSON as a record. */
async function askFreely(slug: string, body: object, accept: string, from = service) {
  const answer = await from.app.inject({
    method: 'POST',
    url: `/v3/prices/${slug}`,
    payload: body,
    headers: { accept, 'x-api-key': from.key },
  });
  if (answer.statusCode !== 200) throw new Error(answer.body);
  return answer.body;
}

/** A member of a row as the cell of a CSV. */
const cellOf = (value: unknown): string =>
  typeof value === 'string' && !/^-?[\d.]+$/.test(value)
    ? textCell(value).replaceAll(/^"|"$/g, '').replaceAll('""', '"')
    : String(value ?? '');

const asCells = (rows: readonly object[]) =>
  rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, v]) => [name, cellOf(v)])));

t.test('rows hold what the CSV of the same request holds, to the last digit', async (t) => {
  for (const { slug } of MARKETS) {
    for (const options of OPTIONS) {
      const body = { filters: RECENT, options };
      const csv = await ask(slug, body, 'text/csv');
      const rows = await ask(slug, body, ROWS);
      t.match(rows.headers['content-type'], /^application\/json; profile=rows/);
      t.same(asCells(parseExact(rows.text)), csvRecords(csv.text), slug);
    }
  }
});

t.test('columns are the named ones of all, in CSV and in rows', async (t) => {
  const short = 'code,name,date,low,mid,high,currency,unitOfMeasure,corrections';
  const named = 'mid,code,fxTo,conversionReason,yearPercent,regionNames'.replace(
    ',regionNames',
    '',
  );
  const columnsOf = { short, [named]: named };
  for (const [columns, list] of Object.entries(columnsOf)) {
    for (const options of [EVERYTHING, AVERAGES, {}]) {
      const body = { filters: RECENT, options };
      const all = csvRecords((await ask('nickel', body, 'text/csv')).text);
      const some = { filters: RECENT, options: { ...options, columns } };
      const names = list.split(',');
      const expected = all.map((row) => Object.fromEntries(names.map((n) => [n, row[n]])));
      const csv = await ask('nickel', some, 'text/csv');
      t.same(parseCsv(csv.text)[0], names);
      t.same(csvRecords(csv.text), expected);
      const rows = await ask('nickel', some, ROWS);
      t.same(asCells(parseExact(rows.text)), expected);
    }
  }
});

t.test('a wide table has the mid of each code and date, and nothing else', async (t) => {
  const codes = ['CP-NI-0001', 'CP-NI-0003', 'CP-NI-0004', 'CP-NI-0011'];
  for (const from of services) {
    for (const options of [{ includeSeries: true }, AVERAGES, { ...EVERYTHING }]) {
      const filters = { ...RECENT, codes };
      const long = csvRecords((await ask('nickel', { filters, options }, 'text/csv', from)).text);
      const wide = { filters, options: { ...options, layout: 'wide' } };
      const table = csvRecords((await ask('nickel', wide, 'text/csv', from)).text);
      const days = [...new Set(long.map(({ date }) => date))].filter(Boolean).sort();
      t.same(
        table.map(({ date }) => date),
        days,
      );
      const found = table.flatMap(({ date, ...mids }) =>
        Object.entries(mids)
          .filter(([, mid]) => mid !== '')
          .map(([name, mid]) => `${name.split(' ')[0]} ${date} ${mid}`),
      );
      const expected = long
        .filter(({ mid }) => mid !== '')
        .map(({ code, date, mid }) => `${code} ${date} ${mid}`);
      t.same(found.sort(), expected.sort());
      const rows = parseExact((await ask('nickel', wide, ROWS, from)).text);
      t.same(asCells(rows), table);
    }
  }
});

t.test('a wide table of several currencies or units says which number is in what', async (t) => {
  const options = { includeSeries: true, layout: 'wide' };
  const { text } = await ask('nickel', { filters: RECENT, options }, 'text/csv');
  const [[, ...names] = []] = parseCsv(text);
  t.ok(names.length > 1 && names.every((name) => /^CP-NI-\d+ \[.+\]$/.test(name)), names.join());
});

t.test(
  'pages of a wide table have a unit with every code, and the numbers of one table',
  async (t) => {
    const codes = ['CP-NI-0001', 'CP-NI-0003', 'CP-NI-0011'];
    const options = { includeSeries: true, layout: 'wide' };
    const tableOf = async (more: object) => {
      const { text, headers } = await ask(
        'nickel',
        { filters: { ...RECENT, codes }, options: { ...options, ...more } },
        'text/csv',
      );
      const cells = csvRecords(text).flatMap(({ date, ...mids }) =>
        Object.entries(mids).map(([name, mid]) => `${name} ${date} ${mid}`),
      );
      return { cells: cells.filter((cell) => !cell.endsWith(' ')), headers };
    };
    const { cells } = await tableOf({});
    const pages: string[] = [];
    let cursor: unknown;
    do {
      const page = await tableOf({ limit: 1, ...(cursor ? { cursor } : {}) });
      pages.push(...page.cells);
      cursor = page.headers['x-next-cursor'];
    } while (cursor);
    t.ok(cells.length > 3);
    t.same(pages.sort(), cells.sort());
  },
);

t.test(
  'a code with the name of the first column of a wide table does not replace it',
  async (t) => {
    const database = await testDatabase(t, { seeded: true });
    await commit(database.pool, async (client) => {
      await addPrice(client, { code: 'date', currency: 'USD', unit: 'tonne' });
      await putPoints(client, 'date', ['2026-06-01', null, '5', null]);
    });
    const own = await serviceOn(t, database);
    const body = {
      filters: { ...RECENT, codes: ['date'] },
      options: { includeSeries: true, layout: 'wide' },
    };
    const rows = parseExact((await ask('nickel', body, ROWS, own)).text);
    t.same(Object.keys(rows[0]), ['date', 'date [USD/Tonne]']);
  },
);

t.test('a list of columns in another form is refused with the form', async (t) => {
  for (const columns of ['', 'code, date', 'code,date,', 'k\u00fcrzel']) {
    const answer = await ask('nickel', { options: { columns } }, 'text/csv');
    t.match(answer.json.errors, [
      {
        pointer: '/options/columns',
        code: 'invalid_format',
        detail: /names of columns with commas/,
      },
    ]);
  }
});

t.test('a wide table that is too large is refused before its first byte', async (t) => {
  const small = await serviceOn(t, await seededDatabase(t), { WIDE_CELLS_MAX: 100 });
  const body = { filters: RECENT, options: { includeSeries: true, layout: 'wide' } };
  const { status, json } = await ask('nickel', body, 'text/csv', small);
  t.equal(status, 400);
  t.equal(json.errors[0].pointer, '/options/layout');
  t.match(json.errors[0].detail, /at most 100 cells/);
});

interface ListedPrice {
  readonly code: string;
  readonly series: readonly object[];
}

t.test('lastObservations is the tail of the full answer, and all else is the same', async (t) => {
  for (const from of services) {
    for (const options of [{ includeSeries: true }, EVERYTHING, AVERAGES]) {
      for (const slug of ['nickel', 'cobalt', 'lithium'] as const) {
        const full = parseExact((await ask(slug, { options }, undefined, from)).text);
        for (const lastObservations of [1, 3, 200, 100_000]) {
          const tail = { options: { ...options, lastObservations } };
          const json = parseExact((await ask(slug, tail, undefined, from)).text);
          const expected = full.data.map((each: ListedPrice) => ({
            ...each,
            series: each.series.slice(-lastObservations),
          }));
          t.same(json.data, expected, `${slug} ${lastObservations}`);
          t.same(json.$metadata, full.$metadata);
          const gzip = await from.app.inject({
            method: 'POST',
            url: `/v3/prices/${slug}`,
            payload: tail,
            headers: { 'x-api-key': from.key, accept: 'application/x-ndjson' },
          });
          const lines = gzip.body.split('\n').slice(0, -1);
          t.same(lines.map(parseExact), expected, 'NDJSON');
        }
      }
    }
  }
});

t.test('lastObservations is the tail in CSV and rows, and by GET', async (t) => {
  const options = { includeSeries: true, lastObservations: 2 };
  const url = '/v3/prices/nickel?includeSeries=true&lastObservations=2';
  const json = parseExact((await ask('nickel', { options })).text);
  const points = json.data.flatMap(({ code, series }: ListedPrice) =>
    series.map((point) => `${code} ${(point as { date: string }).date}`),
  );
  const keyOf = ({ code, date }: Record<string, string>) => `${code} ${date}`;
  const csv = await ask('nickel', { options }, 'text/csv');
  t.same(
    csvRecords(csv.text)
      .filter(({ date }) => date)
      .map(keyOf),
    points,
  );
  const rows = await service.request({ method: 'GET', url: `${url}&format=rows` });
  t.same(rows.json.filter(({ date }: { date: string }) => date).map(keyOf), points);
});

t.test('decimalsAsText has every digit of the number form, as strings', async (t) => {
  for (const from of services) {
    for (const options of [EVERYTHING, AVERAGES]) {
      for (const accept of ['application/json', 'application/x-ndjson', ROWS]) {
        const plain = (await ask('nickel', { filters: RECENT, options }, accept, from)).text;
        const asText = { filters: RECENT, options: { ...options, decimalsAsText: true } };
        const text = (await ask('nickel', asText, accept, from)).text;
        const decimals =
          /"(low|mid|high|\w*(?:[aA]bsolute|[pP]ercent)|\w+Mid|unit\w+|fx(?:From|To))":(-?[\d.]+)/g;
        t.equal(text, plain.replaceAll(decimals, '"$1":"$2"'));
        t.not(text, plain);
      }
    }
  }
});

t.test('warnings=row ends CSV and NDJSON with the warnings of $metadata', async (t) => {
  const filters = { regions: ['Eurpe', 'Europe'] };
  const { json } = await ask('nickel', { filters });
  const { warnings } = json.$metadata;
  t.equal(warnings.length, 1);
  const body = { filters, options: { warnings: 'row', includeSeries: true } };
  const lines = (await askFreely('nickel', body, 'application/x-ndjson')).trimEnd().split('\n');
  t.same(JSON.parse(lines.at(-1) ?? ''), { warning: warnings[0] });
  t.equal(lines.length, json.$metadata.count + 1);
  const csv = await ask('nickel', body, 'text/csv');
  const last = parseCsv(csv.text).at(-1) ?? [];
  t.match(last[0], /^# warning unmatched_value \/filters\/regions\/0: /);
  t.ok(last.slice(1).every((cell) => cell === ''));
  const wideBody = { filters, options: { ...body.options, layout: 'wide' } };
  const wide = parseCsv((await ask('nickel', wideBody, 'text/csv')).text);
  t.match(wide.at(-1)?.[0], /^# warning unmatched_value \/filters\/regions\/0: /);
  t.equal(wide.at(-1)?.length, wide[0]?.length);
  const without = await ask('nickel', { filters, options: { includeSeries: true } }, 'text/csv');
  t.notMatch(without.text, /# warning/);
});

t.test('an option that its format has no use for is refused, not dropped', async (t) => {
  const series = { includeSeries: true };
  const wrong = [
    [{ columns: 'short' }, 'application/json', /^\/options\/columns$/],
    [{ columns: 'short' }, 'application/x-ndjson', /^\/options\/columns$/],
    [{ ...series, layout: 'wide' }, 'application/json', /^\/options\/layout$/],
    [{ warnings: 'row' }, 'application/json', /^\/options\/warnings$/],
    [{ warnings: 'row' }, ROWS, /^\/options\/warnings$/],
    [{ decimalsAsText: true }, 'text/csv', /^\/options\/decimalsAsText$/],
    [{ layout: 'wide' }, 'text/csv', /^\/options\/layout$/],
    [{ lastObservations: 3 }, 'text/csv', /^\/options\/lastObservations$/],
    [{ ...series, lastObservations: 0 }, 'text/csv', /^\/options\/lastObservations$/],
    [{ ...series, layout: 'wide', columns: 'short' }, 'text/csv', /^\/options\/columns$/],
    [{ columns: 'code,colour' }, 'text/csv', /^\/options\/columns$/],
    [{ columns: 'code,code' }, 'text/csv', /^\/options\/columns$/],
    [{ columns: 'code,' }, 'text/csv', /^\/options\/columns$/],
    [{ columns: 'salt' }, ROWS, /^\/options\/columns$/],
  ] as const;
  for (const [options, accept, pointer] of wrong) {
    const { status, json } = await ask('nickel', { options }, accept);
    t.equal(status, 400, JSON.stringify(options));
    t.match(json.errors[0].pointer, pointer);
  }
  const { json } = await ask('nickel', { options: { columns: 'code,lwo' } }, 'text/csv');
  t.match(json.errors[0].detail, /lwo; did you mean low\?/);
});

t.test('rows are sent only to clients that name their profile', async (t) => {
  for (const accept of ['application/json', '*/*', 'application/*', 'application/json;profile=x']) {
    const { headers } = await ask('nickel', {}, accept);
    t.equal(headers['content-type'], 'application/json; charset=utf-8', accept);
  }
  const { headers } = await ask('nickel', {}, 'application/json; profile="rows", text/csv;q=0.5');
  t.match(headers['content-type'], /profile=rows/);
});

t.test('files have a name with market and day; pages by GET name the next one', async (t) => {
  const day = (await ask('nickel', {})).json.$metadata.asOf.slice(0, 10);
  const url = '/v3/prices/nickel?limit=2&regions=Europe';
  const named: Record<string, string> = {
    json: `inline; filename="nickel-${day}.json"`,
    rows: `inline; filename="nickel-${day}.json"`,
    csv: `attachment; filename="nickel-${day}.csv"`,
    ndjson: `attachment; filename="nickel-${day}.ndjson"`,
  };
  for (const [format, disposition] of Object.entries(named)) {
    const { headers } = await service.request({ method: 'GET', url: `${url}&format=${format}` });
    t.equal(headers['content-disposition'], disposition);
    const [, next = ''] = /^<(.*)>; rel="next"$/.exec(headers['link'] ?? '') ?? [];
    t.equal(new URLSearchParams(next).get('cursor'), headers['x-next-cursor']);
    const address = new URL(next, `http://prices.test${url}`);
    const second = await service.request({
      method: 'GET',
      url: `${address.pathname}${address.search}`,
    });
    t.equal(second.status, 200);
    t.match(second.headers['content-disposition'], disposition.slice(0, 10));
  }
});

t.test(
  'the link to the next page keeps the whole query, a question mark in a value too',
  async (t) => {
    const url = '/v3/prices/nickel?regions=any?&regions=Europe&includeSummary=true&limit=1';
    const first = await service.request({ method: 'GET', url });
    const [, next = ''] = /^<(.*)>; rel="next"$/.exec(first.headers['link'] ?? '') ?? [];
    const query = new URLSearchParams(next);
    t.same(query.getAll('regions'), ['any?', 'Europe']);
    const second = await service.request({ method: 'GET', url: `/v3/prices/nickel${next}` });
    t.equal(second.status, 200);
    t.ok(second.json.data[0].code > first.json.data[0].code);
  },
);

t.test('HEAD of an answer that is cached has its length', async (t) => {
  const url = '/v3/prices/nickel?includeSeries=true';
  const plain = { 'accept-encoding': 'identity' };
  let length = '';
  for (let round = 0; round < 3; round += 1) {
    const { text } = await service.request({ method: 'GET', url, headers: plain });
    length = String(Buffer.byteLength(text));
  }
  const { headers, text } = await service.request({ method: 'HEAD', url, headers: plain });
  t.equal(headers['content-length'], length);
  t.equal(text, '');
});
