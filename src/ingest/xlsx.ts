import { posix } from 'node:path';
import { Refusal } from './problems.ts';
import { attributeOf, feedXml, type Tag, type XmlListener } from './xml.ts';
import type { Archive } from './zip.ts';

/** Limits of what is unpacked: a sheet is streamed, the shared texts and parts are held. */
const SHEET_BYTES_MAX = 1_073_741_824;
const TEXTS_BYTES_MAX = 33_554_432;
const PART_BYTES_MAX = 4_194_304;
const CELLS_MAX = 16_384;

export interface Cell {
  readonly type: 'number' | 'text' | 'boolean' | 'error' | 'date';
  readonly text: string;
  /** Whether a formula made the value; `text` is then what it gave when the file was saved. */
  readonly isFormula: boolean;
}

export interface SheetRow {
  /** As the spreadsheet program shows it, from 1. */
  readonly number: number;
  /** By column letters; empty cells are absent. */
  readonly cells: ReadonlyMap<string, Cell>;
}

/** All that a listener collects from a small part of the workbook. */
async function readPart(archive: Archive, name: string, max: number, listener: XmlListener) {
  for await (const _ of feedXml(archive.read(name, max), listener));
}

/** Relations of the workbook: id → path of the part inside the archive. */
async function relationsOf(archive: Archive): Promise<Map<string, { type: string; path: string }>> {
  const relations = new Map<string, { type: string; path: string }>();
  await readPart(archive, 'xl/_rels/workbook.xml.rels', PART_BYTES_MAX, {
    open(tag) {
      if (tag.local !== 'Relationship') return;
      const target = attributeOf(tag, 'Target') ?? '';
      const path = posix.resolve('/xl', target).slice(1);
      const type = (attributeOf(tag, 'Type') ?? '').split('/').at(-1) ?? '';
      relations.set(attributeOf(tag, 'Id') ?? '', { type, path });
    },
  });
  return relations;
}

/** The sheets of the workbook: name → id of the relation. */
async function sheetsOf(archive: Archive): Promise<Map<string, string>> {
  const sheets = new Map<string, string>();
  await readPart(archive, 'xl/workbook.xml', PART_BYTES_MAX, {
    open(tag) {
      if (tag.local !== 'sheet') return;
      const relation = Object.values(tag.attributes).find((each) => each.local === 'id');
      sheets.set(attributeOf(tag, 'name') ?? '', relation?.value ?? '');
    },
  });
  return sheets;
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
      if (local === 'si') texts.push(text);
      else if (local === 'rPh') phonetic = false;
      else if (local === 't') collecting = false;
    },
    text(part) {
      if (collecting) text += part;
    },
  });
  return texts;
}

const columnAfter = (column: string): string => {
  const last = column.at(-1);
  if (last === undefined) return 'A';
  if (last !== 'Z') return column.slice(0, -1) + String.fromCharCode(last.charCodeAt(0) + 1);
  return `${columnAfter(column.slice(0, -1))}A`;
};

const TYPES: ReadonlyMap<string, Cell['type']> = new Map([
  ['n', 'number'],
  ['s', 'text'],
  ['str', 'text'],
  ['inlineStr', 'text'],
  ['b', 'boolean'],
  ['e', 'error'],
  ['d', 'date'],
]);

/** Collects rows from the tags of a sheet. */
class RowListener implements XmlListener {
  readonly texts: readonly string[];
  rows: SheetRow[] = [];
  private number = 0;
  private cells = new Map<string, Cell>();
  private column = '';
  private type = 'n';
  private value: string | null = null;
  private isFormula = false;
  private collecting = false;

  constructor(texts: readonly string[]) {
    this.texts = texts;
  }

  open(tag: Tag): void {
    if (tag.local === 'row') {
      this.number = Number(attributeOf(tag, 'r') ?? this.number + 1);
      this.cells = new Map();
      this.column = '';
    } else if (tag.local === 'c') {
      this.column = attributeOf(tag, 'r')?.replace(/\d+$/, '') ?? columnAfter(this.column);
      this.type = attributeOf(tag, 't') ?? 'n';
      this.value = null;
      this.isFormula = false;
    } else if (tag.local === 'f') {
      this.isFormula = true;
    } else if (tag.local === 'v' || tag.local === 't') {
      this.value ??= '';
      this.collecting = true;
    }
  }

  close(tag: Tag): void {
    if (tag.local === 'v' || tag.local === 't') this.collecting = false;
    else if (tag.local === 'c') this.endCell();
    else if (tag.local === 'row') this.rows.push({ number: this.number, cells: this.cells });
  }

  text(part: string): void {
    if (this.collecting) this.value = (this.value ?? '') + part;
  }

  private endCell(): void {
    if (this.value === null) return;
    const text = this.type === 's' ? this.texts[Number(this.value)] : this.value;
    const type = TYPES.get(this.type);
    const line = this.number;
    if (text === undefined || type === undefined || this.cells.size >= CELLS_MAX) {
      throw new Refusal('invalid_layout', `The cell ${this.column}${line} is damaged`, { line });
    }
    this.cells.set(this.column, { type, text, isFormula: this.isFormula });
  }
}

/**
 * The rows of a sheet, found by its name, in a stream: only the texts that cells share are held.
 * @throws Refusal when the archive is no workbook, or lacks the sheet
 */
export async function* sheetRows(archive: Archive, name: string): AsyncGenerator<SheetRow[]> {
  if (!archive.names.includes('xl/workbook.xml')) {
    throw new Refusal('invalid_layout', 'The archive is not an Excel workbook (.xlsx)');
  }
  const sheets = await sheetsOf(archive);
  const relations = await relationsOf(archive);
  const sheet = relations.get(sheets.get(name) ?? '');
  if (!sheet) {
    const names = [...sheets.keys()].map((each) => `"${each}"`).join(', ');
    throw new Refusal('invalid_layout', `There is no sheet "${name}"; the workbook has ${names}`);
  }
  const texts = [...relations.values()].find((each) => each.type === 'sharedStrings');
  const rows = new RowListener(texts ? await sharedTexts(archive, texts.path) : []);
  for await (const _ of feedXml(archive.read(sheet.path, SHEET_BYTES_MAX), rows)) {
    if (rows.rows.length === 0) continue;
    yield rows.rows;
    rows.rows = [];
  }
  if (rows.rows.length > 0) yield rows.rows;
}
