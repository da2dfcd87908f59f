import { SaxesParser } from 'saxes';
import { fromBufferPromise } from 'yauzl';

/*
 * Reads a workbook by yauzl and saxes, by the letter of ECMA-376. It shares no code with the
 * writer.
 */

/** A cell: its type in the file, its style, and its text. */
export interface XlsxCell {
  readonly type: string;
  readonly style: number;
  readonly text: string;
}

/** A sheet: its rows by the numbers of columns, from 0. */
export interface XlsxSheet {
  readonly name: string;
  readonly rows: readonly ReadonlyMap<number, XlsxCell>[];
  /** The attributes of `pane` and `autoFilter`. */
  readonly pane: Readonly<Record<string, string>>;
  readonly filter: string | null;
}

export interface Workbook {
  /** The paths of the parts, in the order of the archive. */
  readonly parts: readonly string[];
  readonly sheets: readonly XlsxSheet[];
  /** The format of numbers of each style; empty for a general one. */
  readonly formats: readonly string[];
}

/** The parts of an archive. @throws for bytes that are none */
export async function partsOf(bytes: Buffer): Promise<Map<string, string>> {
  const zip = await fromBufferPromise(bytes, {});
  const parts = new Map<string, string>();
  for await (const entry of zip.eachEntry()) {
    const chunks: Buffer[] = [];
    for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk as Buffer);
    parts.set(entry.fileName, Buffer.concat(chunks).toString());
  }
  return parts;
}

type Attributes = Readonly<Record<string, string>>;

/** Calls `open` for each element of an XML text, and `close` with its text. */
function parseXml(
  xml: string,
  open: (name: string, attributes: Attributes) => void,
  close: (name: string, text: string) => void = () => {},
): void {
  const parser = new SaxesParser();
  let text = '';
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('opentag', ({ name, attributes }) => {
    text = '';
    open(name, attributes);
  });
  parser.on('text', (some) => {
    text += some;
  });
  parser.on('closetag', ({ name }) => {
    close(name, text);
    text = '';
  });
  parser.write(xml).close();
}

/** The column and the row of a reference such as `AB12`, both from 0. */
function placeOf(reference: string): readonly [column: number, row: number] {
  const [, letters = '', digits = ''] = /^([A-Z]{1,3})([1-9]\d*)$/.exec(reference) ?? [];
  if (letters === '') throw new Error(`${reference} is no cell`);
  const column = [...letters].reduce((sum, letter) => 26 * sum + letter.charCodeAt(0) - 64, 0);
  return [column - 1, Number(digits) - 1];
}

const unescaped = (text: string): string =>
  text.replace(/_x([0-9A-Fa-f]{4})_/g, (_, code) => String.fromCharCode(Number.parseInt(code, 16)));

function sheetOf(name: string, xml: string): XlsxSheet {
  const rows: Map<number, XlsxCell>[] = [];
  let row = new Map<number, XlsxCell>();
  let pane: Attributes = {};
  let filter: string | null = null;
  let cell = { column: 0, type: 'n', style: 0 };
  const open = (tag: string, attributes: Attributes): void => {
    if (tag === 'pane') pane = attributes;
    if (tag === 'autoFilter') filter = attributes['ref'] ?? null;
    if (tag === 'row') {
      if (Number(attributes['r']) !== rows.length + 1) throw new Error(`row ${attributes['r']}`);
      row = new Map();
      rows.push(row);
    }
    if (tag !== 'c') return;
    const [column, at] = placeOf(attributes['r'] ?? '');
    const isNext = at === rows.length - 1 && column > Math.max(-1, ...row.keys());
    if (!isNext) throw new Error(`${attributes['r']} is not in its order`);
    cell = { column, type: attributes['t'] ?? 'n', style: Number(attributes['s'] ?? 0) };
  };
  const close = (tag: string, text: string): void => {
    if (tag !== 'v' && tag !== 't') return;
    if ((tag === 't') !== (cell.type === 'inlineStr')) throw new Error(`<${tag}> in ${cell.type}`);
    const { column, type, style } = cell;
    row.set(column, { type, style, text: tag === 't' ? unescaped(text) : text });
  };
  parseXml(xml, open, close);
  return { name, rows, pane, filter };
}

/** Reads a workbook. @throws for bytes that are none */
export async function readXlsx(bytes: Buffer): Promise<Workbook> {
  const parts = await partsOf(bytes);
  const part = (path: string): string => {
    const text = parts.get(path);
    if (text === undefined) throw new Error(`no part ${path}`);
    return text;
  };
  const targets = new Map<string, string>();
  parseXml(part('xl/_rels/workbook.xml.rels'), (tag, { Id = '', Target = '' }) => {
    if (tag === 'Relationship') targets.set(Id, `xl/${Target}`);
  });
  const sheets: XlsxSheet[] = [];
  parseXml(part('xl/workbook.xml'), (tag, attributes) => {
    if (tag !== 'sheet') return;
    const path = targets.get(attributes['r:id'] ?? '') ?? '';
    sheets.push(sheetOf(attributes['name'] ?? '', part(path)));
  });
  const named = new Map<string, string>();
  const formats: string[] = [];
  let isCell = false;
  parseXml(part('xl/styles.xml'), (tag, { numFmtId = '', formatCode = '' }) => {
    if (tag === 'numFmt') named.set(numFmtId, formatCode);
    if (tag === 'cellXfs') isCell = true;
    if (tag === 'cellStyles') isCell = false;
    if (tag === 'xf' && isCell) formats.push(named.get(numFmtId) ?? '');
  });
  return { parts: [...parts.keys()], sheets, formats };
}

/** Microseconds of a day. */
const DAY = 86_400_000_000;

/** A cell as that of a CSV: numbers as in the file, dates and times by their formats. */
function cellText({ type, style, text }: XlsxCell, formats: readonly string[]): string {
  if (type === 'inlineStr') return text;
  if (type === 'b') return text === '1' ? 'true' : 'false';
  const format = formats[style] ?? '';
  if (format === '') return text;
  const micros = Math.round((Number(text) % 1) * DAY);
  const day = new Date(Date.UTC(1899, 11, 30) + Math.floor(Number(text)) * 86_400_000);
  if (!format.includes('hh')) return day.toISOString().slice(0, 10);
  const time = new Date(day.getTime() + Math.floor(micros / 1_000_000) * 1_000);
  const fraction = String(micros % 1_000_000)
    .padStart(6, '0')
    .replace(/0+$/, '');
  return `${time.toISOString().slice(0, 19)}${fraction && `.${fraction}`}Z`;
}

/** The rows of a sheet below its names as objects, as those of a CSV. */
export function xlsxRecords(
  { rows: [names = new Map(), ...rows] }: XlsxSheet,
  formats: readonly string[],
): Record<string, string>[] {
  return rows.map((row) =>
    Object.fromEntries(
      [...names].map(([column, { text }]) => {
        const cell = row.get(column);
        return [text, cell === undefined ? '' : cellText(cell, formats)];
      }),
    ),
  );
}

/** The sheet `About`: the cells after each label, in their order. */
export function aboutOf({ sheets }: Workbook): Map<string, string[][]> {
  const about = new Map<string, string[][]>();
  let label = '';
  for (const row of sheets.at(-1)?.rows ?? []) {
    label = row.get(0)?.text ?? label;
    const cells = [1, 2].map((column) => row.get(column)?.text ?? '');
    about.set(label, [...(about.get(label) ?? []), cells]);
  }
  return about;
}
