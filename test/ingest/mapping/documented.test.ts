import { globSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import Ajv from 'ajv';
import t from 'tap';
import { parse } from 'yaml';
import { datePattern } from '../../../src/ingest/mapping/date-pattern.ts';
import { readMapping } from '../../../src/ingest/mapping/mapping.ts';
import { MINOR_NAMES } from '../../../src/ingest/mapping/quotation.ts';
import { MAPPING, mappingSchemaText } from '../../../src/ingest/mapping/schema.ts';
import { tableWith } from '../../../src/ingest/mapping/table.ts';
import { describePrices, loadFile, loadingDatabase, seriesOf } from '../support/loading.ts';
import { faultsOf, loadTable } from './support.ts';

const DOCS = fileURLToPath(new URL('../../../docs/', import.meta.url));
const page = await readFile(`${DOCS}mapping.md`, 'utf8');
const EXAMPLES = globSync('examples/*.yaml', { cwd: DOCS }).sort();

const FORMATS = fileURLToPath(new URL('../../../src/ingest/formats/', import.meta.url));

/** The shipped mappings of formats: the other files are lists. */
const SHIPPED = globSync('*.yaml', { cwd: FORMATS })
  .filter((name) => readFileSync(`${FORMATS}${name}`, 'utf8').includes('mapping.schema.json'))
  .sort();

const ALL = [
  ...EXAMPLES.map((name) => `${DOCS}${name}`),
  ...SHIPPED.map((name) => `${FORMATS}${name}`),
];

interface SchemaNode {
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly anyOf?: readonly SchemaNode[];
  readonly items?: SchemaNode;
}

/** The members of a schema with nested ones, as `rows.stop.column`. */
function membersOf({ properties = {}, anyOf = [], items }: SchemaNode, prefix = ''): string[] {
  const inner = Object.entries(properties).flatMap(([name, each]) => {
    const inside = membersOf(each, `${prefix}${name}.`);
    return inside.length === 0 ? [prefix + name] : inside;
  });
  const others = [...anyOf, ...(items ? [items] : [])].flatMap((each) => membersOf(each, prefix));
  return [...new Set([...inner, ...others])];
}

/** The members of a mapping; a price has the attributes of any market. */
const MEMBERS = membersOf(MAPPING as SchemaNode).filter((name) => !name.startsWith('prices.'));

/** The members that a mapping uses, in the same notation. */
function usedIn(value: unknown, prefix = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((each) => usedIn(each, prefix));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) => [
    prefix + name,
    ...usedIn(each, `${prefix}${name}.`),
  ]);
}

t.test('the schema for editors is that of the mapping, and takes every example', async (t) => {
  const text = await readFile(`${DOCS}mapping.schema.json`, 'utf8');
  t.equal(text, mappingSchemaText());
  const validate = new Ajv.default({ allowUnionTypes: true }).compile(JSON.parse(text));
  for (const path of ALL) t.ok(validate(parse(await readFile(path, 'utf8'))), path);
  t.notOk(validate({ colums: {} }));
});

t.test('every member is in an example or in the mapping of a format', async (t) => {
  const used = new Set<string>();
  for (const path of ALL) {
    for (const member of usedIn(parse(await readFile(path, 'utf8')))) used.add(member);
  }
  // The quotation of a single price has the members of the common one.
  const isUsed = (name: string) => used.has(name) || used.has(name.replace(/^columns\./, ''));
  t.strictSame(
    MEMBERS.filter((name) => !isUsed(name)),
    [],
  );
});

t.test('the page names every member, part of a date, encoding and hundredth there is', (t) => {
  for (const member of MEMBERS) {
    const parts = member.split('.');
    const isNamed = parts.some((_, index) =>
      page.includes(`\`${parts.slice(0, index + 1).join('.')}\``),
    );
    t.ok(isNamed, member);
    t.ok(page.includes(parts.at(-1) ?? ''), member);
  }
  for (const name of MINOR_NAMES) t.match(page, `\`${name}\``);
  const { enum: encodings } = MAPPING.properties.text.properties.encoding as unknown as {
    enum: string[];
  };
  for (const name of encodings) t.match(page, `\`${name}\``);
  t.end();
});

t.test('the table of dates is right, line by line', (t) => {
  const rows = [...page.matchAll(/^\| `([^`]+)` \| `([^`]+)` \| (\d{4}-\d{2}-\d{2}) \|$/gm)];
  t.ok(rows.length >= 6);
  for (const [, text = '', pattern = '', day] of rows) {
    t.equal(datePattern(pattern).read(text)?.day, day, pattern);
  }
  t.end();
});

t.test('every piece of a mapping on the page is one that a mapping can have', (t) => {
  const pieces = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, text = '']) => text);
  t.ok(pieces.length >= 8);
  const rest = {
    columns: 'date: { column: D }\n',
    mid: 'code: { column: C }\ndate: { column: D }\n',
  };
  for (const piece of pieces) {
    const isShape = /^(mid|columns|dateColumns|rates):/m.test(piece);
    t.strictSame(faultsOf(isShape ? piece : `${piece}mid: M\n${rest.mid}`), [], piece);
  }
  const [, wrong = ''] = /```text\nweekly\.yaml:3: (.*)\n```/.exec(page) ?? [];
  const faults = faultsOf(`mid: 1\ntext:\n  delimiter: semicolons\n${rest.mid}`);
  t.strictSame(faults, [`mapping.yaml:3: ${wrong}`]);
  t.end();
});

t.test('every example is a right mapping, and named on the page', async (t) => {
  t.ok(EXAMPLES.length >= 4);
  for (const name of EXAMPLES) {
    await t.resolves(readMapping(`${DOCS}${name}`), name);
    t.match(page, `](${name})`);
  }
});

t.test('the smallest mapping of the page loads the table that it names', async (t) => {
  const { client } = await loadingDatabase(t);
  await describePrices(client, 'A');
  const [, smallest = ''] = /headings Code, Date and Price:\n\n```yaml\n(.*?)```/s.exec(page) ?? [];
  const report = await loadTable(t, client, smallest, 'Date,Price,Code\n2026-01-08,1,A\n');
  t.match(report, { status: 'applied', counts: { inserted: 1 } });
});

t.test('quarters across and ranges of months are loaded by their examples', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const loadExample = async (name: string) => {
    const mapping = await readMapping(`${DOCS}examples/${name}.yaml`);
    const file = `${DOCS}examples/${name}.csv`;
    return loadFile(client, 'table', file, { reader: tableWith(mapping) });
  };
  t.match(await loadExample('quarters-across'), { status: 'applied', vintage: '2026-04-20' });
  t.strictSame(await seriesOf(pool, 'XX-NI-5'), [
    ['2025-12-31', null, '3105.5', null, 0],
    ['2026-03-31', null, '3240', null, 0],
  ]);
  await loadExample('weekly-assessments');
  t.match(await loadExample('monthly-ranges'), { status: 'applied', counts: { inserted: 1 } });
  t.strictSame((await seriesOf(pool, 'XX-CU-1')).at(-1), [
    '2026-02-28',
    '9800',
    '9875.5',
    '9950',
    0,
  ]);
});

t.test('the German example loads ranges, percentages and local times', async (t) => {
  const { client, pool } = await loadingDatabase(t);
  const mapping = await readMapping(`${DOCS}examples/weekly-assessments.yaml`);
  const report = await loadFile(client, 'table', `${DOCS}examples/weekly-assessments.csv`, {
    reader: tableWith(mapping),
  });
  t.match(report, { status: 'applied', counts: { rows: 3, inserted: 3, pricesAdded: 2 } });
  t.strictSame(await seriesOf(pool, 'XX-CU-1'), [
    ['2026-01-08', '9850', '9900.5', '9950', 0],
    ['2026-01-15', null, '10012.25', null, 0],
  ]);
  t.strictSame(await seriesOf(pool, 'XX-CU-2'), [['2026-01-08', null, '97.5', null, 0]]);
  const { rows } = await pool.query(
    'select distinct published_at from series order by published_at',
  );
  t.strictSame(rows, [
    { published_at: '2026-01-09 10:30:00+00' },
    { published_at: '2026-01-16 10:30:00+00' },
  ]);
});
