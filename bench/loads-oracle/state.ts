import type pg from 'pg';

/** A column of a table. */
interface Column {
  readonly table: string;
  readonly name: string;
  readonly type: string;
}

type RowTexts = Readonly<Record<string, string | null>>;

/** Names for the numbers of one database, so that two databases can be compared. */
export interface DatabaseNames {
  /** Place of a batch in the ledger, by its number. */
  readonly batches: ReadonlyMap<string, string>;
  /** Names of rows, by kind and identity. */
  readonly rows: ReadonlyMap<string, string>;
  /** Times from here on are times of the run, RFC 3339 in UTC. */
  readonly began: string;
}

/** Random values, and numbers that depend on the order of statements. */
const IGNORED = /^(epoch|commit_id|keys_change_id|id|opened_by)$/;

/** The kind of row that a column refers to. */
function kindOf(column: string): string | null {
  if (column === 'price_id') return 'price';
  if (column === 'currency_id' || column === 'base_currency_id') return 'currency';
  if (column === 'unit_id') return 'unit';
  if (column === 'product_id') return 'product';
  if (column === 'market_id') return 'market';
  return column.endsWith('_id') ? 'value' : null;
}

const isBatch = (column: string): boolean => /^(batch_id|undoes|undone_by)$/.test(column);

const IDENTITIES = `
  select 'price ' || id, code_key || ' #' || row_number() over (partition by code_key order by id)
    from (select id, code_key from price union select id, code_key from price_history) as p
  union all select 'currency ' || id, iso from currency
  union all select 'unit ' || id, slug from unit_of_measure
  union all select 'product ' || id, market_id || ' ' || slug from product
  union all select 'market ' || id, slug from market
  union all select 'value ' || id, kind || ' ' || slug from dimension_value`;

/** Reads the names of the identities of a database. */
export async function namesOf(client: pg.Client, began: string): Promise<DatabaseNames> {
  const rows = await client.query<string[]>({ text: IDENTITIES, rowMode: 'array' });
  const batches = await client.query('select id::text from load_batch order by id');
  return {
    batches: new Map(batches.rows.map(({ id }, index) => [id, `#${index + 1}`])),
    rows: new Map(rows.rows.map(([id = '', name = '']) => [id, name])),
    began,
  };
}

/** `now` for a time of the run; an earlier time comes from a file and stays. */
const momentOf = (text: string, began: string): string => (text >= began ? 'now' : text);

function cellOf({ name, type }: Column, text: string | null, names: DatabaseNames): string | null {
  if (text === null) return null;
  if (isBatch(name)) return names.batches.get(text) ?? 'no batch';
  const kind = kindOf(name);
  if (kind !== null) return names.rows.get(`${kind} ${text}`) ?? `no ${kind}`;
  return type === 'timestamp with time zone' ? momentOf(text, names.began) : text;
}

/** The ledger row of an undo has a batch number in its file name and hash. */
function withoutNumber(row: RowTexts, names: DatabaseNames): RowTexts {
  if (row['format'] !== 'undo') return row;
  const file = row['file_name']?.replace(/^\d+/, (id) => names.batches.get(id) ?? id) ?? null;
  return { ...row, file_name: file, sha256: null };
}

const COLUMNS = `
  select c.table_name as table, c.column_name as name, c.data_type as type
  from information_schema.columns c
    join information_schema.tables t using (table_schema, table_name)
  where c.table_schema = current_schema() and t.table_type = 'BASE TABLE'
    and c.table_name !~ '^kysely_|^migration_|^api_key|^key_'
  order by c.table_name, c.column_name`;

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** The text of a column, with times in UTC, so that they sort. */
const textOf = ({ name, type }: Column): string =>
  type === 'timestamp with time zone'
    ? `to_char(${quoted(name)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
    : `${quoted(name)}::text`;

/** All rows of the tables of a database, by table, in a notation that two databases share. */
export async function stateOf(
  client: pg.Client,
  names: DatabaseNames,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const { rows: all } = await client.query<Column>(COLUMNS);
  const state = new Map<string, readonly string[]>();
  for (const table of new Set(all.map((each) => each.table))) {
    const columns = all.filter((each) => each.table === table && !IGNORED.test(each.name));
    const list = columns.map((each) => `${textOf(each)} as ${quoted(each.name)}`).join(', ');
    const { rows } = await client.query<RowTexts>(`select ${list} from ${quoted(table)}`);
    const lines = rows.map((row) => {
      const cells = columns.map((each) => [each.name, cellOf(each, row[each.name] ?? null, names)]);
      return JSON.stringify(withoutNumber(Object.fromEntries(cells), names));
    });
    state.set(table, lines.sort());
  }
  return state;
}

/** Members that hold the number of a batch. */
const BATCH_MEMBERS = new Set(['batch', 'undoes', 'undoneBy']);
/** Members with free wording, and times that always differ. */
const FREE_MEMBERS = new Set(['message', 'when', 'startedAt', 'finishedAt', 'recordedAt', 'seq']);

/** A revision in an answer: only its number is equal on both sides. */
const REVISION = /^[0-9a-z]{8,40}\.(\d+)$/;
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/;

function textValue(key: string, text: string, names: DatabaseNames, isUndo: boolean): unknown {
  if (key === 'revision') return text.replace(REVISION, 'revision $1');
  if (MOMENT.test(text)) return momentOf(text, names.began);
  if (isUndo && key === 'sha256') return null;
  if (isUndo && key === 'file') {
    return text.replace(/^\d+/, (id) => names.batches.get(id) ?? id);
  }
  return text;
}

/** A JSON value without wording, identities and times. */
export function plainOf(value: unknown, names: DatabaseNames, key = '', isUndo = false): unknown {
  if (Array.isArray(value)) return value.map((each) => plainOf(each, names, key, isUndo));
  if (typeof value === 'object' && value !== null) {
    const isOfUndo = (value as Record<string, unknown>)['format'] === 'undo';
    return Object.fromEntries(
      Object.entries(value)
        .filter(([name]) => !FREE_MEMBERS.has(name))
        .map(([name, each]) => [name, plainOf(each, names, name, isOfUndo)]),
    );
  }
  if (typeof value === 'number' && BATCH_MEMBERS.has(key)) {
    return names.batches.get(String(value)) ?? value;
  }
  return typeof value === 'string' ? textValue(key, value, names, isUndo) : value;
}
