import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { SaxesParser } from 'saxes';

const run = promisify(execFile);

/** The command of LibreOffice; null if this machine has none. */
export const OFFICE: string | null = await run('soffice', ['--version']).then(
  () => 'soffice',
  () => null,
);

/** A cell as LibreOffice understood it. */
export interface OfficeCell {
  /** `float`, `date`, `boolean`, `string` or `percentage`. */
  readonly type: string;
  /** The value of a number, a date or a boolean, independent of the locale. */
  readonly value: string;
  /** The text that is displayed in the locale. */
  readonly shown: string;
}

const settings = (locale: string): string =>
  `<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
  <item oor:path="/org.openoffice.Setup/L10N">
    <prop oor:name="ooSetupSystemLocale" oor:op="fuse"><value>${locale}</value></prop>
  </item>
</oor:items>`;

/**
 * Opens a file in LibreOffice with the settings of a country, and reads the rows of its first sheet
 * from the flat document that it saves.
 * @param folder one of the caller, for the profile and the document
 * @param filter how to open the file, such as that of a CSV; null to find out
 */
export async function openInOffice(
  file: string,
  locale: string,
  folder: string,
  filter: string | null = null,
): Promise<OfficeCell[][]> {
  const profile = join(folder, `profile-${locale}`);
  await mkdir(join(profile, 'user'), { recursive: true });
  await writeFile(join(profile, 'user', 'registrymodifications.xcu'), settings(locale));
  const out = join(folder, `out-${locale}`);
  await run(
    OFFICE ?? '',
    [
      `-env:UserInstallation=${pathToFileURL(profile)}`,
      '--headless',
      ...(filter === null ? [] : [`--infilter=${filter}`]),
      '--convert-to',
      'fods',
      '--outdir',
      out,
      file,
    ],
    { timeout: 300_000 },
  );
  const name = basename(file).replace(/\.\w+$/, '.fods');
  return rowsOf(await readFile(join(out, name), 'utf8'));
}

/** The rows of the first sheet of a flat OpenDocument, without empty cells at their ends. */
function rowsOf(xml: string): OfficeCell[][] {
  const rows: OfficeCell[][] = [];
  let sheets = 0;
  let row: OfficeCell[] = [];
  let cell: OfficeCell & { times: number } = { type: '', value: '', shown: '', times: 1 };
  let text = '';
  let isText = false;
  const parser = new SaxesParser();
  parser.on('opentag', ({ name, attributes }) => {
    const at = (attribute: string): string => String(attributes[attribute] ?? '');
    if (name === 'table:table') sheets += 1;
    if (name === 'table:table-row') row = [];
    if (name === 'text:p') isText = true;
    if (name === 'text:s') text += ' '.repeat(Number(at('text:c') || 1));
    if (name !== 'table:table-cell') return;
    text = '';
    const value = at('office:value') || at('office:date-value') || at('office:boolean-value') || '';
    const times = Number(at('table:number-columns-repeated') || 1);
    cell = { type: at('office:value-type'), value, shown: '', times };
  });
  parser.on('text', (some) => {
    if (isText) text += some;
  });
  parser.on('closetag', ({ name }) => {
    if (name === 'text:p') isText = false;
    if (name === 'table:table-cell' && (cell.type !== '' || cell.times < 1_000)) {
      const { times, ...made } = cell;
      for (let time = 0; time < times; time += 1) row.push({ ...made, shown: text });
    }
    if (name !== 'table:table-row' || sheets !== 1) return;
    while (row.length > 0 && row.at(-1)?.type === '') row.pop();
    if (row.length > 0) rows.push(row);
  });
  parser.write(xml).close();
  return rows;
}
