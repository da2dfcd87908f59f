import { readFileSync } from 'node:fs';
import t from 'tap';
import { FORMAT_NAMES, FORMATS, formatsOf } from '../../src/contract/schemas/formats.ts';
import { OPTION_NAMES, optionOf } from '../../src/contract/schemas/options.ts';

const read = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/** The cells of the table with a heading. */
function tableOf(text: string, heading: string): string[][] {
  const [, rest = ''] = text.split(`\n${heading}\n`);
  const [rows = ''] = rest.split('\n\n');
  return rows
    .split('\n')
    .slice(1)
    .map((row) => row.split('|').map((cell) => cell.trim()))
    .map((cells) => cells.slice(1, -1));
}

const page = read('docs/formats.md');
const codesIn = (text: string): string[] =>
  [...text.matchAll(/`(\w+)/g)].map(([, name = '']) => name);

t.test('the page of formats has a row for each format, with its media type', async (t) => {
  const rows = tableOf(page, '| `Accept` | `format` | Content |');
  t.same(
    rows.map(([media = '', name]) => [media.replaceAll(' ', ''), name]),
    FORMAT_NAMES.map((name) => [`\`${FORMATS[name].media}\``, `\`${name}\``]),
  );
  const [, words = ''] = /\n\| \| `format=(.*)`: overrides/.exec(page) ?? [];
  t.same(
    words.match(/\w+/g)?.filter((each) => each !== 'or'),
    FORMAT_NAMES,
  );
});

t.test('the page of formats names the formats of each option of some formats', async (t) => {
  const titles: Readonly<Record<string, string>> = {
    csv: 'CSV',
    json: 'JSON',
    ndjson: 'NDJSON',
    xlsx: 'XLSX',
  };
  const titleOf = (name: string): string =>
    titles[name] ?? (name === 'rows' ? name : name.charAt(0).toUpperCase() + name.slice(1));
  const described = tableOf(page, '| Option | Formats | Effect |').map(
    ([option = '', formats]) => [codesIn(option)[0], formats] as const,
  );
  for (const name of OPTION_NAMES) {
    const rows = described.filter(([option]) => option === name).map(([, formats]) => formats);
    const formats = formatsOf(name);
    const isLimited = formats.length < FORMAT_NAMES.length;
    t.equal(rows.length > 0 && rows[0] !== 'all', isLimited, `${name} is in the table`);
    const expected = isLimited ? formats.map(titleOf).join(', ') : 'all';
    for (const row of rows) t.equal(row, expected, name);
  }
});

t.test('every option is in the table of README.md or on the page of formats', async (t) => {
  const readme = tableOf(read('README.md'), '| Option | Default | Effect |');
  const ofFormats = tableOf(page, '| Option | Formats | Effect |');
  const named = [...readme, ...ofFormats].flatMap(([option = '']) => codesIn(option));
  t.same([...new Set(named)].sort(), [...OPTION_NAMES].sort());
  for (const [option = '', value] of readme) {
    const [name] = OPTION_NAMES.filter((each) => each === codesIn(option)[0]);
    const fallback = name === undefined ? null : (optionOf(name).default ?? null);
    if (fallback !== null) t.equal(value, `\`${fallback}\``, `the default of ${name}`);
  }
});
