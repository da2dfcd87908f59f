import t, { type Test } from 'tap';
import { MARKETS } from '../../../src/catalog/markets.ts';
import { seededDatabase, testDatabase } from '../../support/database/database.ts';
import { type Service, serviceOn } from '../../support/http/service.ts';
import {
  aboutOf,
  partsOf,
  readXlsx,
  type Workbook,
  xlsxRecords,
} from '../../support/office/workbook.ts';
import { ANY_MEMORY } from '../../support/prices/any-memory.ts';
import { parseExact } from '../../support/prices/oracle.ts';
import { rowsOf } from '../../support/prices/rows.ts';
import { addPrice, commit, putPoints } from '../../support/prices/sample-writes.ts';

const XLSX = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet';
const EVERYTHING = {
  includeSeries: true,
  includeSummary: true,
  currency: 'EUR',
  unitOfMeasure: 'lb',
};
const MOVING = { includeSeries: true, movingAverage: 5 };
const AVERAGES = { includeSeries: true, aggregate: { period: 'quarter', method: 'average' } };

async function ask({ app, key }: Service, slug: string, body: object) {
  const answer = await app.inject({
    method: 'POST',
    url: `/v3/prices/${slug}`,
    payload: body,
    headers: { accept: XLSX, 'x-api-key': key },
  });
  if (answer.statusCode !== 200) throw new Error(answer.body);
  return { answer, book: await readXlsx(answer.rawPayload) };
}

const dataOf = async (service: Service, slug: string, body: object) =>
  parseExact((await service.post(slug, body)).text).data;

/** The rows of the JSON as a workbook has them: a CSV marks texts that look like formulas. */
const expectedOf = (records: readonly object[]) =>
  records
    .flatMap(rowsOf)
    .map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => [
          name,
          /^'[=+@-]/.test(value) ? value.slice(1) : value,
        ]),
      ),
    );

/** The first difference of two lists of rows; null for none. */
function differenceOf(
  found: readonly Readonly<Record<string, string>>[],
  wanted: readonly Readonly<Record<string, string>>[],
): string | null {
  if (found.length !== wanted.length) return `${found.length} rows and not ${wanted.length}`;
  for (const [index, row] of found.entries()) {
    const names = new Set([...Object.keys(row), ...Object.keys(wanted[index] ?? {})]);
    const odd = [...names].find((name) => row[name] !== wanted[index]?.[name]);
    if (odd) return `row ${index}, ${odd}: ${row[odd]} and not ${wanted[index]?.[odd]}`;
  }
  return null;
}

const pricesOf = ({ sheets, formats }: Workbook) =>
  sheets.slice(0, -1).flatMap((sheet) => xlsxRecords(sheet, formats));

t.test('the workbook of every market holds what its JSON holds, to the last digit', async (t) => {
  const database = await seededDatabase(t);
  for (const settings of [{}, { PRICE_BOOK_BYTES: '0' }]) {
    const service = await serviceOn(t, database, settings);
    for (const { slug } of MARKETS) {
      for (const options of [{}, { includeSeries: true }, EVERYTHING, AVERAGES, MOVING]) {
        const body = { filters: { dateFrom: '2026-06-01' }, options };
        const { answer, book } = await ask(service, slug, body);
        t.equal(answer.headers['content-type'], XLSX);
        t.match(answer.headers['content-disposition'], /^attachment; filename=".*\.xlsx"$/);
        const wanted = expectedOf(await dataOf(service, slug, body));
        t.equal(differenceOf(pricesOf(book), wanted), null, `${slug} ${JSON.stringify(options)}`);
      }
    }
  }
});

const FORMULA = '=1+1 & <b>"x"</b> _x0041_ \u{1F30D}';
const DAY = 'yyyy-mm-dd';
const TIME = `${DAY} hh:mm:ss`;

/** The rows of the next test: column, type, format and text of each cell but those at the ends. */
const TYPED = [
  [
    [1, 'inlineStr', '', '1850-12-31'],
    [3, 'n', '', '-0.0000000001'],
    [4, 'inlineStr', '', '1850-12-31T16:00:00Z'],
  ],
  [
    [1, 'inlineStr', '', '1900-02-28'],
    [3, 'n', '', '1'],
    [4, 'inlineStr', '', '1900-02-28T16:00:00Z'],
  ],
  [
    [1, 'n', DAY, '61'],
    [3, 'n', '', '123456789012345'],
    [4, 'n', TIME, '61.666666666666664'],
  ],
  [
    [1, 'n', DAY, '46027'],
    [2, 'n', '', '0.1'],
    [3, 'n', '', '12345.6789012345'],
    [4, 'n', TIME, '46027.666666666664'],
  ],
] as const;

t.test('numbers, dates and times are typed cells, and texts are never formulas', async (t) => {
  const { url: _url, ...database } = await testDatabase(t, { seeded: true });
  await commit(database.pool, async (client) => {
    const specification = [{ name: '-100 mesh', value: FORMULA, order: 1 }];
    await addPrice(client, { code: 'CP-NI-9001', currency: 'USD', unit: 'tonne', specification });
    await putPoints(
      client,
      'CP-NI-9001',
      ['1850-12-31', null, '-0.0000000001', null],
      ['1900-02-28', null, '1', null],
      ['1900-03-01', null, '123456789012345', null],
      ['2026-01-05', '0.1', '12345.6789012345', '99999'],
    );
  });
  const service = await serviceOn(t, { url: _url, ...database });
  const columns = 'code,date,low,mid,publishedAt,corrections,isSustainable,specification';
  const body = { filters: { codes: ['CP-NI-9001'] }, options: { includeSeries: true, columns } };
  const { book } = await ask(service, 'nickel', body);
  const [sheet] = book.sheets;
  const cells = sheet?.rows.map((row) =>
    [...row].map(([column, { type, style, text }]) => {
      const format = book.formats[style]?.replaceAll('\\', '');
      return [column, type, format, text];
    }),
  );
  t.same(
    cells?.[0]?.map((each) => each[3]),
    columns.split(','),
  );
  const first = [0, 'inlineStr', '', 'CP-NI-9001'];
  const last = [
    [5, 'n', '', '0'],
    [6, 'b', '', '0'],
    [7, 'inlineStr', '', `-100 mesh: ${FORMULA}`],
  ];
  t.same(
    cells?.slice(1),
    TYPED.map((row) => [first, ...row, ...last]),
  );
  t.equal(sheet?.pane['state'], 'frozen');
  t.equal(sheet?.filter, 'A1:H5');
  const options = { ...body.options, decimalsAsText: true };
  const texts = (await ask(service, 'nickel', { ...body, options })).book;
  const mids = texts.sheets[0]?.rows.slice(1).map((row) => row.get(3));
  t.same(
    mids?.map((cell) => [cell?.type, cell?.text]),
    TYPED.map((row) => ['inlineStr', row.find(([column]) => column === 3)?.[3]]),
  );
});

/** A service with two prices, one of a source that asks for a credit. */
async function withSources(test: Test): Promise<Service> {
  const { url, ...database } = await testDatabase(test, { seeded: true });
  await commit(database.pool, async (client) => {
    const specification = [
      { name: 'Source', value: 'World Bank', order: 1 },
      { name: 'Licence', value: 'CC BY 4.0', order: 2 },
      { name: 'VAT', value: 'excluded', order: 3 },
    ];
    await addPrice(client, { code: 'CP-NI-9001', currency: 'USD', unit: 'tonne', specification });
    await addPrice(client, { code: 'CP-NI-9002', currency: 'USD', unit: 'kilogram' });
  });
  return serviceOn(test, { url, ...database });
}

const CODES = ['CP-NI-9001', 'CP-NI-9002', '=none'];
const MONTHS = {
  filters: { codes: CODES, dateFrom: '2026-01-01' },
  options: { includeSeries: true, aggregate: { method: 'average', period: 'month' } },
};

t.test('the sheet About has revision, request, units, sources and every warning', async (t) => {
  const service = await withSources(t);
  const { book } = await ask(service, 'nickel', MONTHS);
  t.same(
    book.sheets.map(({ name }) => name),
    ['Prices', 'About'],
  );
  t.equal(book.parts[0], '[Content_Types].xml');
  const about = aboutOf(book);
  const { json } = await service.post('nickel', MONTHS);
  const { revision, asOf, warnings } = json.$metadata;
  t.same(about.get('Market'), [['Nickel', 'nickel']]);
  t.same(about.get('Revision'), [[revision, '']]);
  const [[serial = ''] = []] = about.get('As of') ?? [];
  const ms = (Number(serial) - 25_569) * 86_400_000;
  t.ok(Math.abs(ms - Date.parse(asOf)) < 1, 'as of is an instant');
  t.same(about.get('Prices'), [['2', '']]);
  t.same(about.get('Rows'), [['2', 'Prices']]);
  t.same(about.get('Request'), [
    ['codes', CODES.join('; ')],
    ['dateFrom', '2026-01-01'],
    ['includeSeries', 'true'],
    ['aggregate', 'month:average'],
  ]);
  t.same(about.get('Currency and unit'), [
    ['USD/Tonne', '1 price'],
    ['USD/Kilogram', '1 price'],
  ]);
  t.same(about.get('VAT'), [['excluded', '1 price']]);
  t.same(about.get('Source'), [['World Bank, CC BY 4.0', '1 price']]);
  const cited = `; revision ${revision} of ${asOf.slice(0, 10)}; `;
  t.same(about.get('Citation'), [
    [
      `Price CP-NI-9001 (CP-NI-9001); VAT excluded${cited}source: World Bank, CC BY 4.0; ` +
        'Commodity Prices Service',
      '',
    ],
    [`Price CP-NI-9002 (CP-NI-9002)${cited}Commodity Prices Service`, ''],
  ]);
  t.same(about.get('Warnings'), [
    [String(warnings.length), ''],
    ...warnings.map(({ code, pointer, detail }: Record<string, string>) => [
      `${code} ${pointer}`,
      detail,
    ]),
  ]);
  t.equal(warnings.length, 1);
});

t.test('a requested value that looks like a formula stays a text in the sheet About', async (t) => {
  const service = await serviceOn(t, await seededDatabase(t));
  const formula = '=HYPERLINK("https://example.org")';
  const { answer, book } = await ask(service, 'nickel', { filters: { regions: [formula] } });
  const cells = book.sheets.at(-1)?.rows.flatMap((row) => [...row.values()]);
  const style = cells?.find(({ text }) => text === formula)?.style;
  const styles = (await partsOf(answer.rawPayload)).get('xl/styles.xml') ?? '';
  const [, formats = ''] = /<cellXfs[^>]*>(.*)<\/cellXfs>/.exec(styles) ?? [];
  t.match(formats.split('<xf ')[1 + (style ?? 0)], /quotePrefix="1".*wrapText="1"/);
});

t.test('the sheet About cites the newest value of each price as the page does', async (t) => {
  const { url, ...database } = await testDatabase(t, { seeded: true });
  await commit(database.pool, async (client) => {
    await addPrice(client, { code: 'CP-NI-9001', currency: 'USD', unit: 'tonne' });
    await putPoints(
      client,
      'CP-NI-9001',
      ['2024-05-14', null, '24', null],
      ['2024-05-15', null, '24.80', null],
    );
  });
  const service = await serviceOn(t, { url, ...database });
  for (const [options, unit, value] of [
    [{ includeSeries: true }, '', '24.8 USD/t on 2024-05-15'],
    [{ includeSeries: true, layout: 'wide' }, '', '24.8 USD/t on 2024-05-15'],
    [{ includeSeries: true, unitOfMeasure: 'kg' }, ' in USD/kg', '0.0248 USD/kg on 2024-05-15'],
    [MONTHS.options, '', '24.4 USD/t, mean of May 2024'],
    [
      { includeSeries: true, aggregate: { period: 'quarter', method: 'average' } },
      '',
      '24.4 USD/t, mean of the quarter from 2024-04-01',
    ],
    [{}, '', 'newest value of 2024-05-15'],
  ] as const) {
    const { book } = await ask(service, 'nickel', { filters: { codes: ['CP-NI-9001'] }, options });
    const [[line] = []] = aboutOf(book).get('Citation') ?? [];
    t.match(line, `Price CP-NI-9001 (CP-NI-9001)${unit}; ${value}; revision `);
  }
});

t.test(
  'the address in the sheet About answers the same rows, and a page names its next',
  async (t) => {
    const service = await withSources(t);
    const { answer, book } = await ask(service, 'nickel', MONTHS);
    const [[address = ''] = []] = aboutOf(book).get('Address') ?? [];
    const again = await service.app.inject({ url: address, headers: { 'x-api-key': service.key } });
    t.equal(again.statusCode, 200);
    t.same(pricesOf(await readXlsx(again.rawPayload)), pricesOf(book));
    t.equal(again.headers['x-data-revision'], answer.headers['x-data-revision']);
    const page = { filters: { codes: CODES }, options: { limit: 1 } };
    const paged = aboutOf((await ask(service, 'nickel', page)).book);
    const { nextCursor } = (await service.post('nickel', page)).json.$metadata;
    t.equal(paged.get('Next page')?.[0]?.[0], nextCursor);
  },
);

t.test('rows beyond a sheet are in the next one, each with its names and filter', async (t) => {
  const database = await seededDatabase(t);
  const whole = await serviceOn(t, database);
  const service = await serviceOn(t, database, { SHEET_ROWS_MAX: 40 });
  const body = { filters: { dateFrom: '2026-06-01' }, options: { includeSeries: true } };
  const expected = pricesOf((await ask(whole, 'nickel', body)).book);
  const { book } = await ask(service, 'nickel', body);
  const tables = book.sheets.slice(0, -1);
  t.equal(tables.length, Math.ceil(expected.length / 39));
  t.ok(tables.length > 2);
  for (const [at, { name, rows, filter }] of tables.entries()) {
    t.equal(name, at === 0 ? 'Prices' : `Prices ${at + 1}`);
    t.equal(filter, `A1:${filter?.match(/:([A-Z]+)/)?.[1]}${rows.length}`);
    if (at < tables.length - 1) t.equal(rows.length, 40);
  }
  t.same(pricesOf(book), expected);
  t.same(
    aboutOf(book).get('Rows'),
    tables.map(({ name, rows }) => [String(rows.length - 1), name]),
  );
  const full = { ...body, options: { ...body.options, lastObservations: 1 } };
  const few = pricesOf((await ask(whole, 'nickel', full)).book).length;
  const exact = await serviceOn(t, database, { SHEET_ROWS_MAX: few + 1 });
  t.equal((await ask(exact, 'nickel', full)).book.sheets.length, 2, 'a full sheet is the last');
});

t.test(
  'a wide sheet has the mids of the wide rows, and more prices than columns are refused',
  async (t) => {
    const service = await serviceOn(t, await seededDatabase(t));
    for (const decimalsAsText of [false, true]) {
      const options = { includeSeries: true, layout: 'wide', decimalsAsText };
      const body = { filters: { dateFrom: '2026-05-01' }, options };
      const { book } = await ask(service, 'nickel', body);
      const rows = await service.request({
        method: 'POST',
        url: '/v3/prices/nickel',
        payload: body,
        headers: { accept: 'application/json;profile=rows' },
      });
      const wanted = parseExact(rows.text).map((row: Readonly<Record<string, string | null>>) =>
        Object.fromEntries(Object.entries(row).map(([name, value]) => [name, value ?? ''])),
      );
      t.equal(differenceOf(pricesOf(book), wanted), null);
      t.ok(wanted.length > 20);
      const types = new Set(book.sheets[0]?.rows.slice(1).map((row) => row.get(1)?.type ?? ''));
      t.ok(types.has(decimalsAsText ? 'inlineStr' : 'n') && types.size <= 2);
    }
    const { checkSheets } = await import('../../../src/prices/write/xlsx/workbook.ts');
    const context = { plan: { options: { layout: 'wide' } }, work: ANY_MEMORY };
    const answer = (prices: number) => ({ context, records: { length: prices } }) as never;
    t.throws(() => checkSheets(answer(16_384)), {
      code: 'validation_failed',
      errors: [
        { pointer: '/options/layout', code: 'out_of_range', detail: /at most 16383 prices/ },
      ],
    });
    t.doesNotThrow(() => checkSheets(answer(16_383)));
  },
);

t.test('a workbook has no content coding unless a client refuses its bytes without', async (t) => {
  const { app, key } = await serviceOn(t, await seededDatabase(t));
  const get = (coding: string, more = {}) =>
    app.inject({
      url: '/v3/prices/nickel?includeSeries=true&format=xlsx',
      headers: { 'x-api-key': key, 'accept-encoding': coding, ...more },
    });
  const plain = await get('identity');
  const coded = await get('gzip, br, zstd');
  t.equal(coded.headers['content-encoding'], undefined);
  t.equal(coded.headers['etag'], plain.headers['etag']);
  t.ok(coded.rawPayload.equals(plain.rawPayload), 'equal answers are equal bytes');
  const insisting = await get('gzip, identity;q=0');
  t.equal(insisting.headers['content-encoding'], 'gzip');
  t.not(insisting.headers['etag'], plain.headers['etag']);
  const again = await get('gzip', { 'if-none-match': plain.headers['etag'] });
  t.equal(again.statusCode, 304);
});
