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

/** Limits of what is unpacked: a sheet is streamed, the shared texts and parts are held. */
const SHEET_BYTES_MAX = 1_073_741_824;
const TEXTS_BYTES_MAX = 33_554_432;
const PART_BYTES_MAX = 4_194_304;

/** A sheet of cells; charts and macros of old are none. */
interface Sheet {
  readonly name: string;
  /** Path of the part inside the archive. */
  readonly path: string;
}

interface Workbook {
  readonly archive: Archive;
  /** In the order in which the spreadsheet program shows them, hidden ones too. */
  readonly sheets: readonly Sheet[];
  /** Whether days are counted from 1904, as old Macintosh programs did. */
  readonly is1904: boolean;
  /** What a number is, by the style of its cell. */
  readonly kinds: readonly NumberKind[];
  /** Path of the texts that cells share; null when there are none. */
  readonly texts: string | null;
}

/** All that a listener collects from a small part of the workbook. */
async function readPart(archive: Archive, name: string, max: number, listener: XmlListener) {
  for await (const _ of feedXml(archive.read(name, max), listener));
}

interface Relation {
  readonly id: string;
  readonly type: string;
  readonly path: string;
}

/** Relations of the workbook to its parts. */
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

/** The sheets of the workbook, name and id of the relation, and its date system. */
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

/** What the styles of cells make of a number. */
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

/** The texts that cells refer to by number. Phonetic guides are no part of a text. */
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

const foreign = (what: string): Refusal => new Refusal('invalid_layout', what);

/** Why a file is no workbook that can be read, as far as its first bytes tell. */
function foreignHead(head: Buffer): string {
  if (head.toString('latin1', 0, 4) !== '\xd0\xcf\x11\xe0') {
    return 'The file is not an Excel workbook (.xlsx)';
  }
  const what = 'The workbook is encrypted or in the old binary format (.xls)';
  return `${what}: save it as .xlsx without a password`;
}

/** Why an archive is no workbook that can be read, by the files that it holds. */
function foreignArchive(names: readonly string[]): string {
  if (names.includes('xl/workbook.bin')) {
    return 'The workbook is in the binary format (.xlsb): save it as .xlsx';
  }
  if (names.includes('content.xml') && names.includes('mimetype')) {
    return 'The file is an OpenDocument spreadsheet (.ods): save it as .xlsx';
  }
  return 'The archive is not an Excel workbook (.xlsx)';
}

/**
 * Opens the workbook that a file is.
 * @throws Refusal when it is none, or damaged
 */
export async function openWorkbook(file: SourceFile): Promise<Workbook> {
  if (!isZip(file.head)) throw foreign(foreignHead(file.head));
  const archive = await openArchive(file);
  if (!archive.names.includes('xl/workbook.xml')) throw foreign(foreignArchive(archive.names));
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
 * The sheet of a name, or the one at a place that counts from 1; the only one where none is named.
 * @throws Refusal when the workbook lacks it, or has several
 */
export function sheetOf({ sheets }: Workbook, wanted: string | number | undefined): Sheet {
  const isWanted = ({ name }: Sheet, index: number): boolean =>
    typeof wanted === 'string' ? name === wanted : index === (wanted ?? 1) - 1;
  const sheet = sheets.find(isWanted);
  const names = sheets.map(({ name }) => name);
  const all = names.map((name) => `"${name}"`).join(', ');
  if (wanted === undefined && sheets.length > 1) {
    throw foreign(`The workbook has several sheets: say which, workbook.sheet, of ${all}`);
  }
  if (sheet) return sheet;
  const what = typeof wanted === 'string' ? `"${wanted}"` : `number ${wanted ?? 1}`;
  const hint = typeof wanted === 'string' ? didYouMean(wanted, names) : '';
  throw foreign(`There is no sheet ${what}; the workbook has ${all}${hint}`);
}

/**
 * The rows of a sheet in a stream: only the texts that cells share are held. Rows without a cell
 * may be absent. Hidden rows and columns are read like others; of merged cells, the first holds
 * the value and the others are empty.
 * @throws Refusal when the sheet is damaged
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
