import { crc32, deflateRawSync } from 'node:zlib';

const MAIN = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';

/** A file of a test archive. */
export interface ArchivePart {
  readonly name: string;
  readonly content: string | Uint8Array;
  /** False sizes and checksums of hostile archives. */
  readonly claims?: { readonly size?: number; readonly crc?: number; readonly flags?: number };
}

/** A minimal ZIP archive. */
export function zipOf(parts: readonly ArchivePart[]): Buffer {
  const files: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, content, claims = {} } of parts) {
    const bytes = Buffer.from(content as string);
    const packed = deflateRawSync(bytes);
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0);
    fields.writeUInt16LE(claims.flags ?? 0, 2);
    fields.writeUInt16LE(8, 4);
    fields.writeUInt32LE(claims.crc ?? crc32(bytes), 10);
    fields.writeUInt32LE(packed.length, 14);
    fields.writeUInt32LE(claims.size ?? bytes.length, 18);
    fields.writeUInt16LE(Buffer.byteLength(name), 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), fields, Buffer.from(name), packed]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(offset, 10);
    directory.push(
      Buffer.concat([Buffer.from('PK\x01\x02\x14\x00'), fields, tail, Buffer.from(name)]),
    );
    files.push(local);
    offset += local.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(parts.length, 4);
  end.writeUInt16LE(parts.length, 6);
  end.writeUInt32LE(central.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...files, central, Buffer.from('PK\x05\x06'), end]);
}

/** A cell: a number as written in the file, a text, a formula with its result, or nothing. */
export type TestCell = { n: string } | string | { formula: string; n: string } | null;

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const lettersOf = (index: number): string =>
  index < 26
    ? String.fromCharCode(65 + index)
    : lettersOf(Math.floor(index / 26) - 1) + lettersOf(index % 26);

function cellXml(cell: TestCell, reference: string, texts: string[]): string {
  // Real workbooks contain blank cells with only a style.
  if (cell === null) return `<c r="${reference}" s="7"/>`;
  if (typeof cell === 'string') {
    if (!texts.includes(cell)) texts.push(cell);
    return `<c r="${reference}" t="s"><v>${texts.indexOf(cell)}</v></c>`;
  }
  const formula = 'formula' in cell ? `<f>${cell.formula}</f>` : '';
  return `<c r="${reference}" s="14">${formula}<v>${cell.n}</v></c>`;
}

function sheetXml(rows: readonly (readonly TestCell[])[], texts: string[]): string {
  const xml = rows.map((cells, row) => {
    const inner = cells.map((cell, at) => cellXml(cell, `${lettersOf(at)}${row + 1}`, texts));
    return `<row r="${row + 1}" spans="1:9">${inner.join('')}</row>`;
  });
  return `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<worksheet xmlns="${MAIN}"><sheetData>${xml.join('')}</sheetData></worksheet>`;
}

const RELATIONS = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
const PACKAGE = 'http://schemas.openxmlformats.org/package/2006/relationships';

/** The parts of a workbook with an empty first sheet and differently numbered files. */
export function workbookParts(
  rows: readonly (readonly TestCell[])[],
  sheetName = 'Monthly Prices',
): ArchivePart[] {
  const texts: string[] = ['never shown'];
  const sheet = sheetXml(rows, texts);
  // Every second text is split into runs, with a phonetic guide, as spreadsheet programs do.
  const items = texts.map((text, index) =>
    index % 2 === 0
      ? `<si><t xml:space="preserve">${escaped(text)}</t></si>`
      : `<si><r><t>${escaped(text.slice(0, 1))}</t></r><r><t xml:space="preserve">${escaped(
          text.slice(1),
        )}</t></r><rPh sb="0" eb="1"><t>guide</t></rPh></si>`,
  );
  return [
    {
      name: 'xl/workbook.xml',
      content: `<workbook xmlns="${MAIN}" xmlns:r="${RELATIONS}"><sheets>
        <sheet name="AFOSHEET" sheetId="22" state="hidden" r:id="rId1"/>
        <sheet name="${sheetName}" sheetId="24" r:id="rId9"/></sheets></workbook>`,
    },
    {
      name: 'xl/_rels/workbook.xml.rels',
      content: `<Relationships xmlns="${PACKAGE}">
        <Relationship Id="rId9" Type="${RELATIONS}/worksheet" Target="worksheets/sheet1.xml"/>
        <Relationship Id="rId1" Type="${RELATIONS}/worksheet" Target="/xl/worksheets/sheet2.xml"/>
        <Relationship Id="rId4" Type="${RELATIONS}/sharedStrings" Target="sharedStrings.xml"/>
        </Relationships>`,
    },
    { name: 'xl/worksheets/sheet1.xml', content: sheet },
    { name: 'xl/worksheets/sheet2.xml', content: sheetXml([], []) },
    { name: 'xl/sharedStrings.xml', content: `<sst xmlns="${MAIN}">${items.join('')}</sst>` },
  ];
}

/** A number cell. */
export const n = (text: string): TestCell => ({ n: text });

export interface PinkSheet {
  readonly updated?: string;
  readonly names?: readonly TestCell[];
  readonly units?: readonly TestCell[];
  /** From column A on. */
  readonly rows: readonly (readonly TestCell[])[];
}

/** A workbook in the layout of the World Bank, with invented numbers. */
export function pinkSheetRows({
  updated = 'Updated on February 03, 2020',
  names = [null, 'Tea, Kolkata', 'Aluminum', 'Potassium chloride **', 'Copper', 'Nickel **', null],
  units = [null, '($/kg)', '($/mt)', '($/mt)', '($/mt)', '($/mt)'],
  rows,
}: PinkSheet): TestCell[][] {
  return [
    ['World Bank Commodity Price Data (The Pink Sheet)', null],
    ['monthly prices in nominal US dollars, 1960 to present'],
    ['(monthly series are available only in nominal US dollars)', null],
    [updated],
    [...names],
    [...units],
    ...rows.map((row) => [...row]),
  ];
}

export const pinkSheet = (sheet: PinkSheet): Buffer => zipOf(workbookParts(pinkSheetRows(sheet)));
