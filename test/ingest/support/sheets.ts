import { type ArchivePart, zipOf } from './workbook.ts';

const MAIN = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';
const RELATIONS = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');

/** A cell without its reference: attributes and content. */
export interface SheetCell {
  readonly type?: string;
  /** The number format. */
  readonly format?: string;
  readonly inner: string;
}

/** A number as written in the file, with an optional format. */
export const num = (text: string, format?: string): SheetCell => ({
  inner: `<v>${text}</v>`,
  ...(format === undefined ? {} : { format }),
});
/** A cell with an inline text. */
export const text = (content: string): SheetCell => ({
  type: 'inlineStr',
  inner: `<is><t>${escaped(content)}</t></is>`,
});
/** A formula with an optional result. */
export const formula = (content: string, value?: string, type?: string): SheetCell => ({
  inner: `<f>${escaped(content)}</f>${value === undefined ? '' : `<v>${value}</v>`}`,
  ...(type === undefined ? {} : { type }),
});
/** Any other cell. */
export const cell = (type: string, value: string): SheetCell => ({
  type,
  inner: `<v>${value}</v>`,
});

/** Cells by reference, in any order; a string stands for a text cell. */
export type Cells = Readonly<Record<string, SheetCell | string>>;

export interface TestBook {
  /** Cells, or the XML inside `worksheet`. */
  readonly sheets: Readonly<Record<string, Cells | { readonly xml: string }>>;
  readonly is1904?: boolean;
  readonly shared?: readonly string[];
  readonly extra?: readonly ArchivePart[];
}

const columnOf = (reference: string): string => reference.replace(/\d+$/, '').padStart(3);
const rowOf = (reference: string): number => Number(reference.replace(/^\D+/, ''));

function sheetXml(cells: Cells, formats: string[]): string {
  const rows = new Map<number, string[]>();
  const order = Object.keys(cells).sort(
    (a, b) => rowOf(a) - rowOf(b) || (columnOf(a) < columnOf(b) ? -1 : 1),
  );
  for (const reference of order) {
    const cell = cells[reference] ?? '';
    const { type, format, inner } = typeof cell === 'string' ? text(cell) : cell;
    if (format !== undefined && !formats.includes(format)) formats.push(format);
    const style = format === undefined ? '' : ` s="${formats.indexOf(format) + 1}"`;
    const kind = type === undefined ? '' : ` t="${type}"`;
    const list = rows.get(rowOf(reference)) ?? [];
    rows.set(rowOf(reference), list);
    list.push(`<c r="${reference}"${style}${kind}>${inner}</c>`);
  }
  const xml = [...rows].map(([row, list]) => `<row r="${row}">${list.join('')}</row>`);
  return `<sheetData>${xml.join('')}</sheetData>`;
}

function stylesXml(formats: readonly string[]): string {
  const codes = formats.map(
    (code, index) => `<numFmt numFmtId="${164 + index}" formatCode="${escaped(code)}"/>`,
  );
  const styles = formats.map((_, index) => `<xf numFmtId="${164 + index}"/>`);
  return `<styleSheet xmlns="${MAIN}"><numFmts>${codes.join('')}</numFmts>
    <cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>
    <cellXfs><xf numFmtId="0"/>${styles.join('')}</cellXfs></styleSheet>`;
}

/** The parts of a workbook, so that a test can corrupt one. */
export function bookParts({
  sheets,
  is1904 = false,
  shared = [],
  extra = [],
}: TestBook): ArchivePart[] {
  const formats: string[] = [];
  const names = Object.keys(sheets);
  const parts = Object.values(sheets).map((cells, index): ArchivePart => {
    const inside = 'xml' in cells ? String(cells.xml) : sheetXml(cells as Cells, formats);
    const content = `<worksheet xmlns="${MAIN}">${inside}</worksheet>`;
    return { name: `xl/worksheets/sheet${index + 1}.xml`, content };
  });
  const list = names.map((name, index) => `<sheet name="${escaped(name)}" r:id="s${index + 1}"/>`);
  const relations = names.map(
    (_, index) =>
      `<Relationship Id="s${index + 1}" Type="x/worksheet"
        Target="worksheets/sheet${index + 1}.xml"/>`,
  );
  const texts = shared.map((content) => `<si><t>${escaped(content)}</t></si>`);
  return [
    {
      name: 'xl/workbook.xml',
      content: `<workbook xmlns="${MAIN}" xmlns:r="${RELATIONS}">
        <workbookPr${is1904 ? ' date1904="1"' : ''}/><sheets>${list.join('')}</sheets></workbook>`,
    },
    {
      name: 'xl/_rels/workbook.xml.rels',
      content: `<Relationships>${relations.join('')}
        <Relationship Id="t" Type="x/sharedStrings" Target="sharedStrings.xml"/>
        <Relationship Id="f" Type="x/styles" Target="styles.xml"/></Relationships>`,
    },
    { name: 'xl/sharedStrings.xml', content: `<sst xmlns="${MAIN}">${texts.join('')}</sst>` },
    { name: 'xl/styles.xml', content: stylesXml(formats) },
    ...parts,
    ...extra,
  ];
}

/** A workbook file. */
export const bookOf = (book: TestBook): Buffer => zipOf(bookParts(book));

/** A workbook with one sheet, "Prices". */
export const sheetOf = (cells: Cells, book: Partial<TestBook> = {}): Buffer =>
  bookOf({ sheets: { Prices: cells }, ...book });
