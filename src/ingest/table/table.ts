import type { Format, ReadContext } from '../formats/format.ts';
import { openWorkbook, type Workbook } from '../parsing/xlsx.ts';
import { isZip } from '../parsing/zip.ts';
import type { Attributes, SourceRecord } from '../records.ts';
import { Refusal } from '../rejects/problems.ts';
import type { TableRow } from './fields.ts';
import { namesOfSheet, namesOfText } from './layout.ts';
import type { TableMapping } from './mapping.ts';
import { Preamble } from './preamble.ts';
import { TableReader, type TableSource } from './reader.ts';
import { sheetWithTable, textRows, workbookRows } from './rows.ts';
import type { Mapping } from './schema.ts';

/** The stated attributes of a price in a mapping, by the names of an answer. */
function attributesOf({ code: _, specification, ...attributes }: PriceEntry): Attributes {
  const texts = attributes as Attributes;
  if (specification === undefined) return texts;
  return { ...texts, specification: JSON.stringify(specification) };
}

type PriceEntry = NonNullable<Mapping['prices']>[number];

/** The prices, products and values that a mapping describes, as records with its own lines. */
function descriptionsOf({ mapping, path, lineOf }: TableMapping): SourceRecord[] {
  const { prices = [], products = [], values = [] } = mapping;
  const place = (list: string, index: number) => ({
    line: lineOf(`/${list}/${index}`),
    file: path,
  });
  return [
    ...products.map(
      (each, index): SourceRecord => ({
        kind: 'product',
        ...place('products', index),
        ...each,
      }),
    ),
    ...values.map(
      (each, index): SourceRecord => ({
        kind: 'value',
        ...place('values', index),
        ...each,
      }),
    ),
    ...prices.map(
      (each, index): SourceRecord => ({
        kind: 'price',
        ...place('prices', index),
        code: each.code,
        attributes: attributesOf(each),
        whenPresent: 'compare',
      }),
    ),
  ];
}

const OLD_WORKBOOK = '\xd0\xcf\x11\xe0';

/** Whether a file is a workbook by its first bytes; also the old and the encrypted kind. */
const isWorkbook = (head: Buffer): boolean =>
  isZip(head) || head.toString('latin1', 0, 4) === OLD_WORKBOOK;

/** A mapping for one kind of file does not guess at the other. */
function refuseOther(mapping: Mapping, isBook: boolean): void {
  const other = isBook ? mapping.text : mapping.workbook;
  const own = isBook ? mapping.workbook : mapping.text;
  if (other === undefined || own !== undefined) return;
  const [is, says] = isBook ? ['a workbook', 'text'] : ['text', 'a workbook'];
  throw new Refusal('invalid_layout', `The file is ${is}, and the mapping is for ${says}`);
}

interface Opened {
  readonly source: TableSource;
  readonly rows: AsyncIterable<readonly TableRow[]>;
}

function openBook(workbook: Workbook, mapping: Mapping): Opened {
  const sheet = sheetWithTable(workbook, mapping.workbook?.sheet);
  const { is1904 } = workbook;
  return {
    source: { namesOf: () => namesOfSheet(sheet.name), hasEdges: false, is1904 },
    rows: workbookRows(workbook, sheet),
  };
}

async function* readTable(loaded: TableMapping, { file, problems }: ReadContext) {
  const { mapping } = loaded;
  const isBook = isWorkbook(file.head);
  refuseOther(mapping, isBook);
  yield descriptionsOf(loaded);
  const preamble = new Preamble(mapping);
  const { source, rows } = isBook
    ? openBook(await openWorkbook(file), mapping)
    : {
        source: { namesOf: namesOfText, hasEdges: true, is1904: false },
        rows: textRows(file, mapping.text ?? {}, preamble.isOfUse, problems),
      };
  const reader = new TableReader(mapping, preamble, source, problems);
  for await (const block of rows) {
    const records: SourceRecord[] = [];
    const isEnd = !block.every((row) => reader.take(row, records));
    yield records;
    if (isEnd) return;
  }
  reader.end();
}

/** Any table; what its columns mean is told by a mapping only. */
export const table: Format = {
  title: 'Any delimited or Excel table, as a mapping describes it (docs/mapping.md)',
  accepts: 'delimited text or an Excel workbook (.xlsx), told apart by content',
  lineage: ['csv', 'ndjson', 'table'],
  needsVintage: false,
  read: () => {
    throw new Error('a table is read with a mapping');
  },
};

/** Reads a table as a mapping says; whether it is text or a workbook is told by the content. */
export const tableWith = (mapping: TableMapping): Format => ({
  ...table,
  mappingSha256: mapping.sha256,
  read: (context) => readTable(mapping, context),
});
