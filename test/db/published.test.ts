import { readFile } from 'node:fs/promises';
import t from 'tap';
import { MARKETS } from '../../src/catalog/markets.ts';
import { dimensionFields } from '../../src/contract/schemas/formats.ts';
import { type TestDatabase, testDatabase } from '../support/database/database.ts';
import { type Service, serviceOn } from '../support/http/service.ts';
import { CHANGES } from '../support/prices/changes.ts';
import { changesOf } from '../support/prices/feed-oracle.ts';
import { LINES, readAll } from '../support/prices/feed-pages.ts';
import { parseExact } from '../support/prices/oracle.ts';

/*
 * The views of the schema `published` against the answers of the service: for every market, now and
 * at past revisions. Numbers are compared as texts with every digit.
 */

let database: TestDatabase;
let service: Service;

t.before(async () => {
  database = await testDatabase(t, { seeded: true });
  for (const change of Object.values(CHANGES)) await change(database, t);
  service = await serviceOn(t, database);
});

type Row = Readonly<Record<string, unknown>>;

const query = async (sql: string, values: readonly unknown[] = []): Promise<Row[]> =>
  (await database.pool.query<Row>(sql, [...values])).rows;

/** The texts of all columns of a view, nulls as empty texts. */
const textsOf = (columns: readonly string[]): string =>
  columns.map((name) => `coalesce(${name}::text, '') as ${name}`).join(', ');

const snake = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** An instant as PostgreSQL prints it. */
const sqlTime = (instant: string | null): string =>
  instant === null ? '' : instant.replace('T', ' ').replace('Z', '+00');

const text = (value: unknown): string => (value === null ? '' : String(value));

interface ApiRecord {
  readonly code: string;
  readonly series: readonly Readonly<Record<string, string | null>>[];
  readonly specification: readonly object[];
  readonly [field: string]: unknown;
}

/** The records of a market with all points, numbers as texts. */
async function recordsOf(slug: string, options: object = {}): Promise<readonly ApiRecord[]> {
  const answer = await service.post(slug, { options: { includeSeries: true, ...options } });
  if (answer.status !== 200) throw new Error(answer.text);
  return parseExact(answer.text).data;
}

const nameOf = (value: unknown): string => text((value as { name: string } | null)?.name ?? null);

const POINT = [
  ...['market', 'code', 'date', 'low', 'mid', 'high', 'currency', 'unit_of_measure'],
  ...['published_at', 'corrections'],
];

/** The points of records in the columns of `published.point`. */
const pointRows = (slug: string, records: readonly ApiRecord[]): Row[] =>
  records.flatMap((record) =>
    record.series.map((point) => ({
      market: slug,
      code: record.code,
      date: point['date'],
      low: text(point['low']),
      mid: text(point['mid']),
      high: text(point['high']),
      currency: text((record['currency'] as { iso: string } | null)?.iso ?? null),
      unit_of_measure: nameOf(record['unitOfMeasure']),
      published_at: sqlTime(point['publishedAt'] ?? null),
      corrections: text(point['corrections']),
    })),
  );

/** Rows as lines, which are compared much faster than objects. */
const linesOf = (rows: readonly Row[]): string =>
  rows.map((row) => JSON.stringify(Object.entries(row).sort())).join('\n');

const IN_ORDER = 'order by code collate "C", date';

for (const market of MARKETS) {
  const { slug } = market;
  t.test(`${slug}: price and point show what the service answers`, async (t) => {
    const records = await recordsOf(slug);
    t.ok(records.length > 0);
    const points = await query(
      `select ${textsOf(POINT)} from published.point where market = $1 ${IN_ORDER}`,
      [slug],
    );
    t.equal(linesOf(points), linesOf(pointRows(slug, records)));
    const names = [
      ...['product', 'priceCategory', 'priceType', 'frequency', 'unitOfMeasure'],
      ...dimensionFields(market),
    ];
    const columns = [
      ...['code', 'name', 'short_name', 'currency', 'product_alias', 'chemical_code'],
      ...['is_sustainable', 'assessment_launched_at', 'last_assessed_at', 'latest_published_at'],
      'vat_country',
      ...names.map(snake),
    ];
    const found = await query(
      `select ${textsOf(columns)}, specification from published.price where market = $1
        order by code collate "C"`,
      [slug],
    );
    const product = (record: ApiRecord) => record['product'] as Readonly<Record<string, unknown>>;
    const expected = records.map((record) => ({
      code: record.code,
      name: record['name'],
      short_name: text(record['shortName']),
      vat_country: text(record['vatCountry']),
      currency: text((record['currency'] as { iso: string } | null)?.iso ?? null),
      product_alias: product(record)['alias'],
      chemical_code: product(record)['chemicalCode'],
      is_sustainable: text(product(record)['isSustainable']),
      assessment_launched_at: text(record['assessmentLaunchedAt']),
      last_assessed_at: text(record['lastAssessedAt']),
      latest_published_at: sqlTime(record['latestPublishedAt'] as string | null),
      ...Object.fromEntries(names.map((name) => [snake(name), nameOf(record[name])])),
      specification: record.specification.map((each) => ({
        ...each,
        order: Number((each as { order: string }).order),
      })),
    }));
    t.strictSame(found, expected);
  });
}

t.test(
  'point_asof shows what the service answers at past revisions, in every market',
  async (t) => {
    const revisions = await query(
      'select revision, name from published.revision order by revision',
    );
    t.ok(revisions.length > 8);
    // Names of units are those of today; see the comment of the column.
    const columns = POINT.filter((each) => each !== 'unit_of_measure');
    for (const { revision, name } of revisions) {
      const found = Map.groupBy(
        await query(`select ${textsOf(columns)} from published.point_asof($1) ${IN_ORDER}`, [
          revision,
        ]),
        ({ market }) => market,
      );
      for (const { slug } of MARKETS) {
        const records = await recordsOf(slug, { revision: name });
        const expected = pointRows(slug, records).map(({ unit_of_measure: _, ...row }) => row);
        t.equal(linesOf(found.get(slug) ?? []), linesOf(expected), `${slug} at ${revision}`);
      }
    }
  },
);

t.test('rate shows both legs of what the service answers', async (t) => {
  const { json } = await service.request({
    method: 'GET',
    url: '/v3/reference/rates?base=USD&quote=CNY',
  });
  t.ok(json.data.length > 100);
  const found = await query(
    `select b.date, b.rate::text as base, q.rate::text as quote
      from published.rate b join published.rate q using (source, date)
      where b.source = $1 and b.currency = 'USD' and q.currency = 'CNY' order by date`,
    [json.$metadata.source],
  );
  t.strictSame(
    found,
    json.data.map(({ date, legs }: { date: string; legs: object }) => ({ date, ...legs })),
  );
});

t.test(
  'change shows the feed: each change, in its order, with the numbers before and after',
  async (t) => {
    const feed = await readAll(service, 5_000);
    const members = ['low', 'mid', 'high', 'published_at', 'corrections'];
    const sides = ['before', 'after'].flatMap((side) => members.map((name) => `${side}_${name}`));
    const columns = [
      'seq',
      'operation',
      'market',
      'code',
      'date',
      ...sides,
      'before_name',
      'after_name',
    ];
    const found = await query(`select ${textsOf([...columns, 'recorded_at'])} from published.change
    order by number`);
    const expected = feed.map((change) => {
      const isPoint = change.date !== null;
      const sideValue = (side: 'before' | 'after', name: string) => {
        const value = change[side];
        if (!isPoint || value === null) return '';
        if (name === 'published_at') return sqlTime(value['publishedAt'] ?? null);
        return text(value[name] ?? null);
      };
      const { seq, operation, market, code } = change;
      return {
        ...{ seq, operation, market, code, date: change.date ?? '' },
        ...Object.fromEntries(
          (['before', 'after'] as const).flatMap((side) =>
            members.map((name) => [`${side}_${name}`, sideValue(side, name)]),
          ),
        ),
        before_name: isPoint ? '' : text(change.before?.['name'] ?? null),
        after_name: isPoint ? '' : text(change.after?.['name'] ?? null),
        recorded_at: sqlTime(change.recordedAt),
      };
    });
    t.ok(expected.length > 1_000);
    t.equal(found.length, expected.length);
    t.equal(linesOf(found), linesOf(expected));
    const numbers =
      await query(`select count(distinct number)::int as numbers, min(number)::int as first,
    max(number)::int as last from published.change`);
    t.strictSame(numbers, [{ numbers: feed.length, first: 1, last: feed.length }], 'without a gap');
    const half = found[Math.floor(found.length / 2)] as Row;
    const rest = await service.request({
      method: 'GET',
      url: `/v3/changes?limit=10&after=${half['seq']}`,
      headers: LINES,
    });
    t.equal(changesOf(rest.text)[0]?.seq, found[Math.floor(found.length / 2) + 1]?.['seq']);
  },
);

t.test('a condition on a code or a time uses the indexes', async (t) => {
  const { pool } = database;
  await pool.query('analyze');
  const code = (await query('select min(code) as code from published.point'))[0]?.['code'];
  const newest = (await query('select max(revision) as revision from published.revision'))[0];
  const plans: [string, readonly unknown[]][] = [
    ['select * from published.point where code = $1', [code]],
    ['select * from published.point_asof($2) where code = $1', [code, newest?.['revision']]],
    [
      `select * from published.change
        where recorded_at >= (select max(recorded_at) from published.revision)`,
      [],
    ],
  ];
  for (const [sql, values] of plans) {
    const { rows } = await pool.query(`explain ${sql}`, [...values]);
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    t.notMatch(plan, /Seq Scan on series/, sql);
  }
});

t.test('the queries of docs/database.md run, and find rows', async (t) => {
  const [, section = ''] = /## SQL for readers\n(.*?)\n## /s.exec(
    await readFile(new URL('../../docs/database.md', import.meta.url), 'utf8'),
  ) as RegExpExecArray;
  const queries = [...section.matchAll(/```sql( grafana)?\n(.*?)```/gs)].map(
    ([, , sql = '']) => sql,
  );
  t.equal(queries.length, 6, 'five queries and that of Grafana');
  for (const sql of queries) {
    const rows = await query(
      sql
        .replace('$__timeFilter(date)', "date between '2000-01-01' and '2100-01-01'")
        .replace("'ECB'", "'SAMPLE'")
        .replace("'ECB'", "'SAMPLE'"),
    );
    // No point of the samples changed after 2026.
    t.ok(rows.length > 0 || sql.includes('point_asof'), sql);
  }
  const views = await query(`select relname as name from pg_class
    where relnamespace = 'published'::regnamespace and relkind = 'v'`);
  for (const { name } of views) t.match(section, `published.${name}`);
});
