import t from 'tap';
import { describePrices, loadingDatabase, seriesOf } from '../support/loading.ts';
import { bookOf, num } from '../support/sheets.ts';
import { loadTable, placesOf } from './support.ts';

const TABLE = `
code: { constant: A }
date: { column: Date, pattern: dd.MM.yyyy }
mid: Price
`;

t.test('the sheet is found by name or place, and never guessed', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const data = (price: string) => ({ A1: 'Date', B1: 'Price', A2: '01.01.2024', B2: num(price) });
  const sheets = { Notes: { A1: 'x' }, "Jan's prices": data('1'), Last: data('x') };
  const book = bookOf({ sheets });
  const named = (sheet: string) => `${TABLE}\nworkbook: { sheet: ${sheet} }`;
  t.match(await loadTable(t, client, TABLE, book), {
    errors: [{ code: 'invalid_layout', message: /several sheets: .* "Notes", "Jan's prices"/ }],
  });
  t.match(await loadTable(t, client, named("Jan's price"), book), {
    errors: [{ code: 'invalid_layout', message: /no sheet .*; did you mean "Jan's prices"/ }],
  });
  t.match(await loadTable(t, client, named('4'), book), {
    errors: [{ message: /no sheet number 4/ }],
  });
  t.strictSame(placesOf(await loadTable(t, client, named('Last'), book)), [
    [2, 'Last!B2', 'x', 'invalid_number'],
  ]);
  t.match(await loadTable(t, client, named('2'), book), { status: 'applied' });
  t.strictSame(
    placesOf(
      await loadTable(
        t,
        client,
        named('2'),
        bookOf({ sheets: { ...sheets, "Jan's prices": data('y') } }),
      ),
    ),
    [[2, "'Jan''s prices'!B2", 'y', 'invalid_number']],
  );
});

t.test(
  'rows and columns are read although they are hidden, merged cells where they begin',
  async (t) => {
    const { client, pool } = await loadingDatabase(t);
    await describePrices(client, 'A', 'B');
    const xml = `<dimension ref="A1:A1"/><cols><col min="2" max="2" hidden="1"/></cols><sheetData>
    <row r="2"><c r="B2" t="inlineStr"><is><r><t>Co</t></r><r><t>de</t></r><rPh><t>x</t></rPh></is>
      </c>
      <c t="inlineStr"><is><t xml:space="preserve"> Date_x000A_of </t></is></c>
      <c r="D2" t="inlineStr"><is><t>Price</t></is></c></row>
    <row r="3" hidden="1"><c r="B3" t="inlineStr"><is><t>A</t></is></c>
      <c r="C3" t="inlineStr"><is><t>2024-01-01</t></is></c><c r="D3"><v>1</v></c></row>
    <row r="4"><c r="C4" t="inlineStr"><is><t>2024-01-02</t></is></c><c r="D4"><v>2</v></c></row>
    <row r="6"><c r="B6" t="inlineStr"><is><t>B</t></is></c>
      <c r="C6" t="inlineStr"><is><t>2024-01-01</t></is></c><c r="D6"><v>3</v></c></row>
    </sheetData><mergeCells><mergeCell ref="B3:B4"/></mergeCells>
    <controls><from><row>7</row></from></controls>`;
    const mapping = `
rows: { header: 2 }
code: { column: Code }
date: { column: Date of }
mid: Price
`;
    t.strictSame(
      placesOf(await loadTable(t, client, mapping, bookOf({ sheets: { P: { xml } } }))),
      [[4, 'P!B4', '', 'missing_value']],
    );
    const filled = xml.replace('<row r="4">', `<row r="4">${xml.match(/<c r="B3".*?<\/c>/)?.[0]}`);
    const report = await loadTable(
      t,
      client,
      mapping,
      bookOf({ sheets: { P: { xml: filled.replace(/(<row r="4"><c r=)"B3"/, '$1"B4"') } } }),
    );
    t.match(report, { status: 'applied', counts: { rows: 3 }, errors: [] });
    t.strictSame(
      (await seriesOf(pool, 'A')).map(([date, , mid]) => [date, mid]),
      [
        ['2024-01-01', '1'],
        ['2024-01-02', '2'],
      ],
    );
  },
);
