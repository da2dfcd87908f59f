import type { Random } from './random.ts';

/** A file that a command loads. */
export interface TextFile {
  /** Extension of the name. */
  readonly ending: string;
  readonly content: string | Buffer;
}

/** Prices in every database of the oracle; see `BASE`. */
export const CODES = ['OR-NI-1', 'OR-NI-2', 'OR-AL-1', 'OR-CU-1', 'OR-LI-1'] as const;
/** Prices that sequences describe. */
const NEW_CODES = ['OR-NEW-1', 'OR-NEW-2', 'OR-NEW-3'] as const;
const DAYS = ['01', '02', '03', '04', '05', '08', '09'].map((day) => `2026-01-${day}`);

/** 399 to 401 days before days of the base: jumps are searched within 400 days. */
const FAR_DAYS = ['2024-11-30', '2024-12-01', '2024-12-02'];

export const dayOf = (random: Random): string => random.pick(DAYS);

const described = (code: string, market: string, product: string, more: object): string =>
  JSON.stringify({
    price: {
      ...{ code, market, name: `Price ${code}`, product, priceCategory: 'Spot' },
      ...{ priceType: 'Price', frequency: 'Weekly', currency: 'USD', unitOfMeasure: 't' },
      ...more,
    },
  });

/** The prices with which each sequence starts, one of them without points, as NDJSON. */
export const BASE: string = [
  described('OR-NI-1', 'nickel', 'Nickel cathode', { region: 'Europe' }),
  described('OR-NI-2', 'nickel', 'Ferronickel', { currency: 'EUR', purity: '99.8% Ni min' }),
  described('OR-AL-1', 'aluminium', 'Bauxite', { region: 'Global' }),
  described('OR-CU-1', 'copper', 'Copper cathode, grade A', {
    ...{ priceType: 'Payable', currency: null, unitOfMeasure: 'Percent' },
  }),
  described('OR-LI-1', 'copper', 'Copper cathode, grade A', { unitOfMeasure: 'lb' }),
  ...DAYS.slice(0, 6).flatMap((date) =>
    CODES.slice(0, 4).map((code) =>
      JSON.stringify({ code, date, mid: 100, publishedAt: '2026-01-06T12:00:00Z' }),
    ),
  ),
  '',
].join('\n');

/** A value; one multiplied by a hundred is a jump. */
const midOf = (random: Random): string =>
  random.chance(0.01)
    ? random.pick(['10000', '0', '-100'])
    : random.pick(['100', '100.0', '101', '102.5', '110', '120.125', '99.9999999999']);

/** Invalid cells by column. */
const BAD_CELLS: Readonly<Record<string, readonly string[]>> = {
  code: ['NO-SUCH-1', 'OR-NI-', '', 'has space', 'ÄÖ'],
  date: ['2026-02-30', '2099-01-01', '1799-12-31', '', '01.02.2026', '2026-1-1'],
  low: ['1e3', 'x', '200'],
  mid: ['', 'abc', '"1,5"', '1e5', 'NaN', '0.12345678901', '1234567890123456'],
  high: ['-', '50', ' '],
  publishedAt: ['2026-01-06', 'now', '2099-01-01T00:00:00Z', '2026-01-06T25:00:00Z'],
};

type CellTexts = Record<string, string>;

function pointRow(random: Random, code: string): CellTexts {
  const mid = midOf(random);
  const isRange = Number(mid) > 0 && Number(mid) < 130 && random.chance(0.4);
  return {
    code,
    date: random.chance(0.06) ? random.pick(FAR_DAYS) : dayOf(random),
    low: isRange ? '98' : '',
    mid,
    high: isRange ? '130' : '',
    publishedAt: random.weighted([
      [6, '2026-01-12T16:00:00Z'],
      [2, '2026-01-12T17:00:00+01:00'],
      [1, '2026-01-13T16:00:00.5Z'],
      [1, ''],
    ]),
  };
}

/** Rows of points; duplicates come only from injected faults. */
function pointRows(random: Random, codes: readonly string[]): CellTexts[] {
  const rows = Array.from({ length: random.int(1, 7) }, () => pointRow(random, random.pick(codes)));
  const seen = new Set<string>();
  return rows.filter(({ code, date }) => {
    const key = `${code} ${date}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

const textOf = (columns: readonly string[], rows: readonly CellTexts[], end = '\n'): string =>
  [columns.join(','), ...rows.map((row) => columns.map((each) => row[each] ?? '').join(','))]
    .map((line) => `${line}${end}`)
    .join('');

/** Corrupts one to three rows, each by one cell or by duplication. */
function spoilRows(random: Random, rows: CellTexts[]): void {
  for (let left = random.int(1, 3); left > 0; left -= 1) {
    const row = random.pick(rows);
    if (random.chance(0.2)) rows.push({ ...row, mid: midOf(random) });
    else {
      const column = random.pick(Object.keys(BAD_CELLS));
      row[column] = random.pick(BAD_CELLS[column] ?? ['']);
    }
  }
}

/** Corrupts a whole text. */
export function spoilText(random: Random, text: string): string | Buffer {
  const lines = text.split('\n');
  const at = random.int(0, Math.max(0, lines.length - 2));
  const change = (next: (line: string) => string) =>
    lines.with(at, next(lines[at] ?? '')).join('\n');
  return random.pick<() => string | Buffer>([
    () => '',
    () => `${lines[0]}\n`,
    () => change((line) => `${line},extra`),
    () => change((line) => line.slice(0, line.lastIndexOf(','))),
    () => change((line) => `"${line}`),
    () => change((line) => line.replace(/\w(?=\w*,)/, '"')),
    () => change((line) => `${line}\u0000`),
    () => Buffer.concat([Buffer.from(change((line) => line)), Buffer.from([0xff, 0xfe, 10])]),
    () => `\ufeff${text.replaceAll('\n', '\r\n')}`,
    () => text.replace('date', 'day'),
    () => `${text}\n\n`,
  ])();
}

const DESCRIPTION = ['market', 'name', 'shortName', 'product', 'priceCategory', 'priceType'];
const MORE_DESCRIPTION = ['frequency', 'currency', 'unitOfMeasure', 'assessmentLaunchedAt'];
const DIMENSIONS = ['purity', 'region', 'specification'];

function descriptionOf(random: Random, code: string): CellTexts {
  return {
    code,
    market: 'nickel',
    name: random.pick([`Price ${code}`, '"Nickel, other name"', 'Nickel renamed']),
    shortName: random.pick(['', 'Ni']),
    product: random.pick(['Nickel cathode', 'Nickel cathode', 'Nickel matte']),
    priceCategory: random.pick(['Spot', 'Premium']),
    priceType: 'Price',
    frequency: 'Weekly',
    currency: code === 'OR-NI-2' ? 'EUR' : 'USD',
    unitOfMeasure: random.pick(['t', 'Tonne']),
    assessmentLaunchedAt: random.pick(['', '2025-01-02']),
    purity: code === 'OR-NI-2' ? '99.8% Ni min' : '',
    region: random.pick(['Europe', 'Europe', 'Global', '']),
    specification: random.pick(['', '"[{""name"":""basis"",""value"":""one""}]"']),
  };
}

/** Cells of a description that are refused, or that change immutable attributes. */
const BAD_DESCRIPTIONS: Readonly<Record<string, readonly string[]>> = {
  market: ['nikel', 'copper', ''],
  product: ['Nickel catode', ''],
  priceCategory: ['Spott'],
  priceType: ['Payable', 'Prize'],
  frequency: ['Weakly'],
  currency: ['EUR', 'ZZZ', 'ABC', ''],
  unitOfMeasure: ['lb', 'pound of gold'],
  assessmentLaunchedAt: ['2026-13-01'],
  region: ['Mars'],
  purity: ['98%'],
  specification: ['"{}"', '"[{""name"":1}]"'],
};

/** Points of known prices; some files have faults. */
export function csvPoints(random: Random): TextFile {
  const rows = pointRows(random, CODES);
  if (random.chance(0.18)) spoilRows(random, rows);
  const columns = random.pick([
    ['code', 'date', 'low', 'mid', 'high', 'publishedAt'],
    ['date', 'publishedAt', 'mid', 'code'],
  ]);
  const text = textOf(columns, rows);
  return { ending: '.csv', content: random.chance(0.07) ? spoilText(random, text) : text };
}

/** Descriptions of new or known prices, with points. */
export function csvDescriptions(random: Random): TextFile {
  const codes = random.some([...NEW_CODES, 'OR-NI-1', 'OR-NI-2'], 1, 3);
  const rows: CellTexts[] = codes.map((code) => {
    const row = descriptionOf(random, code);
    return random.chance(0.6) ? { ...row, ...pointRow(random, code) } : row;
  });
  for (const row of pointRows(random, [...codes, 'OR-AL-1'])) {
    if (!rows.some(({ code, date }) => code === row['code'] && date === row['date'])) {
      rows.push(row);
    }
  }
  if (random.chance(0.15)) {
    const row = rows[random.int(0, codes.length - 1)] as CellTexts;
    const column = random.pick(Object.keys(BAD_DESCRIPTIONS));
    row[column] = random.pick(BAD_DESCRIPTIONS[column] ?? ['']);
  }
  const points = ['code', 'date', 'low', 'mid', 'high', 'publishedAt'];
  const columns = [...points, ...DESCRIPTION, ...MORE_DESCRIPTION, ...DIMENSIONS];
  const text = textOf(columns, rows);
  return { ending: '.csv', content: random.chance(0.05) ? spoilText(random, text) : text };
}

const BAD_LINES = [
  '{"code": "OR-NI-1", "date": "2026-01-03", "mid": "x"}',
  '{"code": "OR-NI-1", "date": "2026-01-03", "mid": true}',
  '{"code": "OR-NI-1", "date": "2026-01-03", "mid": 100, "other": 1}',
  '{"code": "OR-NI-1", "date": "2026-01-03"}',
  '{"code": "OR-NI-1", "date": "2026-01-03", "mid": 100',
  '[1]',
  '{"value": {"dimension": "colour", "name": "Red"}}',
  '{"value": {"dimension": "purity", "name": ""}}',
  `{"product": {"market": "nikel", "name": "Nickel x", "alias": "x",
    "chemicalCode": "Ni", "isSustainable": false}}`.replace(/\n */, ' '),
  '{"price": {"code": "OR-NI-1", "market": "copper"}}',
  '{"code": "NO-SUCH-1", "date": "2026-01-03", "mid": 100}',
];

/** NDJSON: points, and descriptions with products and dimension values. */
export function ndjson(random: Random): TextFile {
  const lines: string[] = [];
  if (random.chance(0.5)) {
    const name = random.pick(['Nickel dust', 'Nickel flakes']);
    const product = { market: 'nickel', name, alias: 'x', chemicalCode: 'Ni' };
    const purity = random.pick(['97.7% Ni min', '96.6% Ni min']);
    lines.push(JSON.stringify({ product: { ...product, isSustainable: false } }));
    lines.push(JSON.stringify({ value: { dimension: 'purity', name: purity } }));
    const more = { purity, region: random.pick([null, 'Europe']) };
    lines.push(described(random.pick(NEW_CODES), 'nickel', name, more));
  }
  for (const { code, date, mid, low, high, publishedAt } of pointRows(random, CODES)) {
    const times = publishedAt === '' ? {} : { publishedAt };
    const range = low === '' ? {} : { low, high: Number(high) };
    lines.push(
      JSON.stringify({ code, date, mid: random.pick([mid, Number(mid)]), ...range, ...times }),
    );
  }
  if (random.chance(0.15)) lines.splice(random.int(0, lines.length), 0, random.pick(BAD_LINES));
  const text = `${lines.join('\n')}\n`;
  return { ending: '.ndjson', content: random.chance(0.04) ? spoilText(random, text) : text };
}

/** A file of points to withdraw. */
export function withdrawals(random: Random): TextFile {
  // Prices and days of the base.
  const rows = pointRows(random, CODES.slice(0, 4)).slice(0, random.int(1, 3));
  if (random.chance(0.2)) spoilRows(random, rows);
  const text = textOf(
    random.pick([
      ['code', 'date'],
      ['date', 'code'],
    ]),
    rows,
  );
  return { ending: '.csv', content: random.chance(0.1) ? spoilText(random, text) : text };
}
