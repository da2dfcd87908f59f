import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { inUtf8 } from '../parsing/lines.ts';
import { rows } from '../parsing/rows.ts';
import { openWorkbook, sheetOf, sheetRows } from '../parsing/xlsx.ts';
import { isZip } from '../parsing/zip.ts';
import type { FileFormat, RateSource, ReadContext } from '../records/format.ts';
import { Refusal } from '../records/load-error.ts';
import type { Attributes, SourceRecord } from '../records/source-record.ts';
import { lettersAndNames, namesOfSheet, namesOfText } from './columns.ts';
import type { TableRow } from './fields.ts';
import { mappingOf, type TableMapping } from './mapping.ts';
import { Preamble } from './preamble.ts';
import { TableReader, type TableSource } from './reader.ts';
import type { Mapping } from './schema.ts';

/** The attributes of a price in a mapping, by their names in an answer. */
function attributesOf({ code: _, specification, ...attributes }: PriceEntry): Attributes {
  const texts = attributes as Attributes;
  if (specification === undefined) return texts;
  return { ...texts, specification: JSON.stringify(specification) };
}

type PriceEntry = NonNullable<Mapping['prices']>[number];

/**
 * The prices, products and dimension values that a mapping describes.
 * @param line of the file to report as their place; null for their lines in the mapping
 */
function descriptionsOf(loaded: TableMapping, line: number | null): SourceRecord[] {
  const { prices = [], products = [], values = [] } = loaded.mapping;
  const placeOf = (list: string, index: number) =>
    line === null ? { line: loaded.lineOf(`/${list}/${index}`), file: loaded.path } : { line };
  return [
    ...products.map(
      (each, index): SourceRecord => ({ kind: 'product', ...placeOf('products', index), ...each }),
    ),
    ...values.map(
      (each, index): SourceRecord => ({ kind: 'value', ...placeOf('values', index), ...each }),
    ),
    ...prices.map(
      (each, index): SourceRecord => ({
        kind: 'price',
        ...placeOf('prices', index),
        code: each.code,
        attributes: attributesOf(each),
        // A shipped description does not overwrite later edits of the price.
        whenPresent: line === null ? 'compare' : 'keep',
      }),
    ),
  ];
}

const OLD_WORKBOOK = '\xd0\xcf\x11\xe0';

/** Whether a file is a workbook by its first bytes, including old and encrypted workbooks. */
const isWorkbook = (head: Buffer): boolean =>
  isZip(head) || head.toString('latin1', 0, 4) === OLD_WORKBOOK;

/** Refuses a workbook for a text mapping, and text for a workbook mapping. */
function refuseOther(mapping: Mapping, isBook: boolean): void {
  const other = isBook ? mapping.text : mapping.workbook;
  const own = isBook ? mapping.workbook : mapping.text;
  if (other === undefined || own !== undefined) return;
  const [is, says] = isBook ? ['a workbook', 'text'] : ['text', 'a workbook'];
  throw new Refusal('invalid_layout', `The file is ${is}, but the mapping is for ${says}`);
}

/** Options of a mapping that is shipped with a format. */
interface Shipped {
  /** The text to read instead of the file. */
  readonly text?: AsyncGenerator<Buffer>;
}

/** Opens a workbook or a text. @param shipped for the mapping of a shipped format */
async function opened(
  loaded: TableMapping,
  preamble: Preamble,
  { file, problems }: ReadContext,
  shipped: Shipped | null,
): Promise<{ source: TableSource; found: AsyncIterable<readonly TableRow[]> }> {
  const { mapping } = loaded;
  // Users do not have the file of a shipped mapping, so problems in it are reported at the header.
  const opening = (header: TableRow | null): readonly SourceRecord[] =>
    shipped ? descriptionsOf(loaded, header?.line ?? 1) : [];
  const hasPlaces = shipped === null;
  if (!isWorkbook(file.head) || shipped?.text) {
    const { delimiter = 'comma', encoding = 'utf-8' } = mapping.text ?? {};
    const isParsed = (line: number, text: string) => preamble.isParsed(line) && text.trim() !== '';
    const bytes = shipped?.text ?? inUtf8(file.bytes(), encoding, file.head, problems.rejects);
    return {
      source: { namesOf: namesOfText, opening, hasFixedWidth: true, is1904: false, hasPlaces },
      found: rows(bytes, { delimiter, isParsed }, problems),
    };
  }
  problems.rejects?.refuse('a workbook');
  const workbook = await openWorkbook(file);
  const sheet = sheetOf(workbook, mapping.workbook?.sheet);
  const namesOf = (header: TableRow | null) =>
    shipped ? lettersAndNames(header, preamble.mark) : namesOfSheet(sheet.name);
  return {
    source: { namesOf, opening, hasFixedWidth: false, is1904: workbook.is1904, hasPlaces },
    found: sheetRows(workbook, sheet),
  };
}

/**
 * Reads text or a workbook, detected by content, with a mapping.
 * @param shipped for the mapping of a shipped format
 */
async function* readTable(
  loaded: TableMapping,
  context: ReadContext,
  shipped: Shipped | null = null,
): AsyncGenerator<SourceRecord[]> {
  const { mapping } = loaded;
  refuseOther(mapping, isWorkbook(context.file.head) && !shipped?.text);
  if (!shipped) yield descriptionsOf(loaded, null);
  const preamble = new Preamble(mapping);
  const { source, found } = await opened(loaded, preamble, context, shipped);
  const reader = new TableReader(mapping, preamble, source, context.problems);
  for await (const block of found) {
    const records: SourceRecord[] = [];
    const isEnd = !block.every((row) => reader.take(row, records));
    yield records;
    if (isEnd) break;
  }
  yield reader.end();
}

/** The publisher of the rates of a mapping. */
export const rateSourceOf = ({ rates }: Mapping): RateSource | undefined =>
  rates && { slug: rates.source, name: rates.name, base: rates.base };

/** The format of tables with a mapping. Text and workbooks are detected by content. */
export const tableWith = (loaded: TableMapping): FileFormat => ({
  lineage: ['csv', 'ndjson', 'table'],
  needsVintage: false,
  mappingSha256: loaded.sha256,
  source: rateSourceOf(loaded.mapping),
  read: (context) => readTable(loaded, context),
});

/** Reads the mapping of a shipped format. @param url of the mapping file */
export const shippedMapping = (url: URL): TableMapping =>
  mappingOf(readFileSync(url), basename(url.pathname));

/**
 * Reads a publisher's file with the mapping of its format.
 * @throws Refusal for another file
 */
export async function* readShipped(
  mapping: TableMapping,
  context: ReadContext,
  shipped: Shipped = {},
): AsyncGenerator<SourceRecord[]> {
  try {
    yield* readTable(mapping, context, shipped);
  } catch (error) {
    const { problem } = error as Refusal;
    if (!(error instanceof Refusal) || problem.code !== 'missing_column') throw error;
    // The columns of a publisher's file are fixed: a missing one means another file.
    throw new Refusal('invalid_layout', problem.message, problem);
  }
}
