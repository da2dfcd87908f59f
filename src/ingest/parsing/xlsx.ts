import { posix } from 'node:path';
import { didYouMean } from '../../catalog/nearest.ts';
import { Refusal } from '../records/load-error.ts';
import type { SourceFile } from '../records/source-file.ts';
import type { SourceRow } from './rows.ts';
import {
  builtInKind,
  type Cell,
  kindOfFormat,
  type NumberKind,
  RowListener,
  withoutEscapes,
} from './xlsx-cells.ts';
import { attributeOf, feedXml, type XmlListener } from './xml.ts';
import { type Archive, isZip, openArchive } from './zip.ts';

/**
 * Limits of unpacked sizes. Sheets are streamed; shared texts and other parts are held in memory.
 */
const SHEET_BYTES_MAX = 1_073_741_824;
const TEXTS_BYTES_MAX = 33_554_432;
const PART_BYTES_MAX = 4_194_304;

/** A worksheet. Chart sheets and macro sheets are not included. */
interface Sheet {
  readonly name: string;
  /** Path of the part inside the archive. */
  readonly path: string;
}

interface Workbook {
  readonly archive: Archive;
  /** In the order of the spreadsheet program, including hidden sheets. */
  readonly sheets: readonly Sheet[];
  /** True if days count from 1904, as in old Macintosh programs. */
  readonly is1904: boolean;
  /** Number kind by style index of a cell. */
  readonly kinds: readonly NumberKind[];
  /** Path of the shared texts; null if the workbook has none. */
  readonly texts: string | null;
}

/** Feeds a small part of the workbook to a listener. */
async function readPart(archive: Archive, name: string, max: number, listener: XmlListener) {
  for await (const _ of feedXml(archive.read(name, max), listener));
}

interface Relation {
  readonly id: string;
  readonly type: string;
  readonly path: string;
}

/** Reads the relations of the workbook to its parts. */
async function relationsOf(archive: Archive): Promise<Relation[]> {
  const relations: Relation[] = [];
  await readPart(archive, 'xl/_rels/workbook.xml.rels', PART_BYTES_MAX, {
    open(tag) {
      if (tag.local !== 'Relationship') return;
      const target = attributeOf(tag, 'Target') ?? '';
      const path = posix.resolve('/xl', target).slice(1);
      const type = (attributeOf(tag, 'Type') ?? '').split('/').at(-1) ?? '';
      relations.push({ id: attributeOf(tag, 'Id') ?? '', type, path });
    },
  });
  return relations;
}

/** Reads the names and relation ids of the sheets, and the date system. */
async function outlineOf(archive: Archive) {
  const sheets: { name: string; relation: string }[] = [];
  let is1904 = false;
  await readPart(archive, 'xl/workbook.xml', PART_BYTES_MAX, {
    open(tag) {
      if (tag.local === 'workbookPr') {
        is1904 = ['1', 'true'].includes(attributeOf(tag, 'date1904') ?? '');
      }
      if (tag.local !== 'sheet') return;
      const relation = Object.values(tag.attributes).find((each) => each.local === 'id');
      sheets.push({ name: attributeOf(tag, 'name') ?? '', relation: relation?.value ?? '' });
    },
  });
  return { sheets, is1904 };
}

/** Reads the number kind of each cell style. */
async function numberKinds(archive: Archive, path: string): Promise<NumberKind[]> {
  const own = new Map<string, NumberKind>();
  const kinds: NumberKind[] = [];
  let isCellStyle = false;
  await readPart(archive, path, PART_BYTES_MAX, {
    open(tag) {
      const id = attributeOf(tag, 'numFmtId') ?? '';
      if (tag.local === 'numFmt') own.set(id, kindOfFormat(attributeOf(tag, 'formatCode') ?? ''));
      else if (tag.local === 'cellXfs') isCellStyle = true;
      else if (tag.local === 'xf' && isCellStyle) kinds.push(own.get(id) ?? builtInKind(+id));
    },
    close({ local }) {
      if (local === 'cellXfs') isCellStyle = false;
    },
  });
  return kinds;
}

/** Reads the shared texts, without phonetic guides. */
async function sharedTexts(archive: Archive, path: string): Promise<string[]> {
  const texts: string[] = [];
  let text = '';
  let collecting = false;
  let phonetic = false;
  await readPart(archive, path, TEXTS_BYTES_MAX, {
    open({ local }) {
      if (local === 'si') text = '';
      else if (local === 'rPh') phonetic = true;
      else if (local === 't') collecting = !phonetic;
    },
    close({ local }) {
      if (local === 'si') texts.push(withoutEscapes(text));
      else if (local === 'rPh') phonetic = false;
      else if (local === 't') collecting = false;
    },
    text(part) {
      if (collecting) text += part;
    },
  });
  return texts;
}

const otherKind = (what: string): Refusal => new Refusal('invalid_layout', what);

/** States why a file is not a readable workbook, by its first bytes. */
function otherKindByHead(head: Buffer): string {
  if (head.toString('latin1', 0, 4) !== '\xd0\xcf\x11\xe0') {
    return 'The file is not an Excel workbook (.xlsx)';
  }
  const what = 'The workbook is encrypted or in the old binary format (.xls)';
  return `${what}: save it as .xlsx without a password`;
}

/** States why an archive is not a readable workbook, by its file names. */
function otherKindByNames(names: readonly string[]): string {
  if (names.includes('xl/workbook.bin')) {
    return 'The workbook is in the binary format (.xlsb): save it as .xlsx';
  }
  if (names.includes('content.xml') && names.includes('mimetype')) {
    return 'The file is an OpenDocument spreadsheet (.ods): save it as .xlsx';
  }
  return 'The archive is not an Excel workbook (.xlsx)';
}

/**
 * Opens a workbook.
 * @throws Refusal if the file is not a workbook, or damaged
 */
export async function openWorkbook(file: SourceFile): Promise<Workbook> {
  if (!isZip(file.head)) throw otherKind(otherKindByHead(file.head));
  const archive = await openArchive(file);
  if (!archive.names.includes('xl/workbook.xml')) throw otherKind(otherKindByNames(archive.names));
  const { sheets, is1904 } = await outlineOf(archive);
  const relations = await relationsOf(archive);
  const pathOf = (type: string): string | null =>
    relations.find((each) => each.type === type)?.path ?? null;
  const styles = pathOf('styles');
  const hasStyles = styles !== null && archive.names.includes(styles);
  return {
    archive,
    sheets: sheets.flatMap(({ name, relation }) => {
      const { path, type } = relations.find(({ id }) => id === relation) ?? {};
      return path !== undefined && type === 'worksheet' ? [{ name, path }] : [];
    }),
    is1904,
    kinds: hasStyles ? await numberKinds(archive, styles) : [],
    texts: pathOf('sharedStrings'),
  };
}

/**
 * Finds a sheet by its name or its place from 1; without either, the only sheet.
 * @throws Refusal if the workbook lacks the sheet, or has several and none is named
 */
export function sheetOf({ sheets }: Workbook, wanted: string | number | undefined): Sheet {
  const isWanted = ({ name }: Sheet, index: number): boolean =>
    typeof wanted === 'string' ? name === wanted : index === (wanted ?? 1) - 1;
  const sheet = sheets.find(isWanted);
  const names = sheets.map(({ name }) => name);
  const all = names.map((name) => `"${name}"`).join(', ');
  if (wanted === undefined && sheets.length > 1) {
    throw otherKind(
      `The workbook has several sheets: set workbook.sheet in the mapping to one of ${all}`,
    );
  }
  if (sheet) return sheet;
  const what = typeof wanted === 'string' ? `"${wanted}"` : `number ${wanted ?? 1}`;
  const hint = typeof wanted === 'string' ? didYouMean(wanted, names) : '';
  throw otherKind(`There is no sheet ${what}; the workbook has ${all}${hint}`);
}

/**
 * Streams the rows of a sheet; only the shared texts are held in memory. Rows without cells may be
 * absent. Hidden rows and columns are included. In merged cells, the first holds the value and the
 * others are empty.
 * @throws Refusal for a damaged sheet
 */
export async function* sheetRows(
  workbook: Workbook,
  sheet: Sheet,
): AsyncGenerator<SourceRow<Cell | undefined>[]> {
  const { archive, texts, kinds } = workbook;
  const rows = new RowListener(texts === null ? [] : await sharedTexts(archive, texts), kinds);
  for await (const _ of feedXml(archive.read(sheet.path, SHEET_BYTES_MAX), rows)) {
    if (rows.rows.length === 0) continue;
    yield rows.rows;
    rows.rows = [];
  }
  if (rows.rows.length > 0) yield rows.rows;
}
