import t from 'tap';
import type { LoadReport } from '../../../src/ingest/load/request.ts';
import { describePrices, errorsOf, loadingDatabase, loadText, points } from '../support/loading.ts';

const point = (members: object): string =>
  JSON.stringify({ code: 'A', date: '2026-01-01', mid: 1, ...members });

t.test('hostile NDJSON is refused line by line, never by an error of ours', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const product = { market: 'aluminium', name: 'New', alias: 'New', chemicalCode: 'N' };
  const productLine = (members: object) =>
    JSON.stringify({ product: { ...product, isSustainable: false, ...members } });
  const price = (members: object) => JSON.stringify({ price: { code: 'A', ...members } });
  const half = '\ud800';
  const lines = [
    ['{"constructor": {}}', 'constructor', 'unknown_member'],
    ['{"__proto__": {}}', '__proto__', 'unknown_member'],
    ['{"toString": {"code": "A"}}', 'toString', 'unknown_member'],
    [point({ code: 'a\0' }), 'code', 'invalid_code'],
    [point({ code: half }), 'code', 'invalid_code'],
    [price({ code: 'a\0', name: 'A' }), 'code', 'invalid_code'],
    [point({ date: '2026-01-01\0' }), 'date', 'invalid_date'],
    [point({ publishedAt: '2026-01-01T00:00:00Z\0' }), 'publishedAt', 'invalid_time'],
    [price({ name: '' }), 'name', 'invalid_text'],
    [price({ name: half }), 'name', 'invalid_text'],
    [price({ name: 'one\u2028two' }), 'name', 'invalid_text'],
    [price({ shortName: '' }), 'shortName', 'invalid_text'],
    [price({ specification: [{ name: 'a', value: half }] }), 'specification', 'invalid_text'],
    [productLine({ alias: 'a\0' }), 'alias', 'invalid_text'],
    [productLine({ chemicalCode: half }), 'chemicalCode', 'invalid_text'],
    [productLine({ name: 'x'.repeat(201) }), 'name', 'invalid_text'],
    [productLine({ market: 'constructor' }), 'market', 'unknown_market'],
  ];
  // One file for each line: descriptions of one price would conflict.
  for (const [index, [line = '', column, code]] of lines.entries()) {
    const report = await loadText(t, client, 'ndjson', `\n${line}\n`);
    t.equal(report.status, 'refused', `line ${index}`);
    t.strictSame(errorsOf(report), [[2, column, code]], `line ${index}`);
  }
  const { rows } = await pool.query(`select count(*) from load_batch where status = 'refused'`);
  t.equal(rows[0].count, String(lines.length), 'each refusal is in the ledger');
});

t.test('a code has 1 to 64 visible ASCII characters, in every format', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A', 'x'.repeat(64));
  const wrong = ['A B', ' A', 'A ', '\uff21', '\u00c4', 'A\u200b', 'x'.repeat(65), 'A\u001b[2J'];
  const csv = await loadText(
    t,
    client,
    'csv',
    points(...[...wrong, ''].map((code) => `${code},2026-01-01,,1,,`)),
  );
  const expected = wrong.map((_, index) => [index + 2, 'code', 'invalid_code']);
  t.strictSame(errorsOf(csv), [...expected, [10, 'code', 'missing_value']]);
  t.match(csv.counts, { rows: 9, rejected: 9 });
  const ndjson = await loadText(
    t,
    client,
    'ndjson',
    wrong.map((code) => point({ code })).join('\n'),
  );
  t.strictSame(
    errorsOf(ndjson),
    expected.map(([line, ...rest]) => [Number(line) - 1, ...rest]),
  );
  const described = 'code,date,mid,name\nA B,2026-01-01,1,Name\nA\u00a0B,2026-01-01,1,Name\n';
  const both = await loadText(t, client, 'csv', described);
  t.strictSame(errorsOf(both), [
    [2, 'code', 'invalid_code'],
    [3, 'code', 'invalid_code'],
  ]);
  t.match(
    both.counts,
    { rows: 2, rejected: 2 },
    'a row with two records is reported and counted once',
  );
  const fine = points(`${'X'.repeat(64)},2026-01-01,,1,,`, 'a,2026-01-01,,1,,');
  t.match(await loadText(t, client, 'csv', fine), { status: 'applied', counts: { inserted: 2 } });
});

t.test('no control character of a file reaches the report', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const evil = '\u001b[2J\u0007\u009b';
  const escaped = JSON.stringify(evil).replaceAll('\u009b', '\\u009b');
  const ndjson = [
    `{${escaped}: 1}`,
    `{"code": "A", ${escaped}: 1, ${escaped}: 2}`,
    `{"code": ${escaped}, "date": "2026-01-01", "mid": 1}`,
    `{"price": {"code": ${escaped}, "name": ${escaped}}}`,
    `{"price": {"code": "A", "market": ${escaped}}}`,
    `{"code": "A", "date": ${escaped}, "mid": ${escaped}}`,
    evil,
  ];
  const reports: LoadReport[] = [
    await loadText(t, client, 'csv', `code,${evil}\nA,1\n`),
    await loadText(t, client, 'csv', points(`${evil},2026-01-01,,1,,`, `A,${evil},,1,,`, evil)),
    await loadText(t, client, 'ndjson', ndjson.join('\n')),
    await loadText(t, client, 'ecb', `Date,${evil},\n`),
    await loadText(t, client, 'ecb', `<${evil}>`),
    await loadText(t, client, 'ecb', `<a xmlns="${'x'.repeat(5_000)}"></b${'y'.repeat(5_000)}>`),
  ];
  for (const { status, errors } of reports) {
    t.equal(status, 'refused');
    for (const { message, column, value } of errors) {
      t.notMatch(`${message}${column}${value}`, /[\p{Cc}\p{Cs}]/u);
      t.ok(message.length <= 1_000);
      t.ok((column ?? '').length <= 64);
    }
  }
  t.equal(reports[2]?.errorsTotal, ndjson.length);
});
