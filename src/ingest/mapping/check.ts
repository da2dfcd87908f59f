import { isDay, isInstant } from '../parsing/dates.ts';
import { cellPlace, indexOfLetters } from '../parsing/xlsx-cells.ts';
import { isCode } from '../records/source-record.ts';
import { type DatePattern, datePattern, PatternError, PERIODS } from './date-pattern.ts';
import { quotationProblem } from './quotation.ts';
import type { ColumnRef, DateNotation, Mapping, Published } from './schema.ts';
import { pointerTo } from './yaml.ts';

/** A rule that a mapping breaks, and the member that breaks it. */
interface MappingFault {
  readonly pointer: string;
  readonly message: string;
}

type Report = (pointer: string, message: string) => void;

/** The header line, 0 for none; null if the header is found by its content. */
export const headerOf = ({ rows = {} }: Mapping): number | null => {
  const { header = 1 } = rows;
  return typeof header === 'number' ? header : null;
};

/** The first line with values, below the header and the units. */
export const firstBelow = ({ rows = {}, units }: Mapping, header: number): number =>
  rows.first ?? header + (units ? 2 : 1);

const SHAPES = ['mid', 'columns', 'dateColumns', 'rates'] as const;
const RULES = {
  mid: { needs: ['code', 'date'], refuses: [] },
  columns: { needs: ['date'], refuses: ['code', 'low', 'high'] },
  dateColumns: { needs: ['code'], refuses: ['date', 'low', 'high'] },
  rates: {
    needs: ['date'],
    refuses: ['code', 'low', 'high', 'published', 'publishedAt', 'prices', 'products', 'values'],
  },
} as const;

/** A table has exactly one shape, and each shape needs other members. */
function checkShape(mapping: Mapping, report: Report): void {
  const found = SHAPES.filter((name) => mapping[name] !== undefined);
  const [shape] = found;
  if (shape === undefined || found.length > 1) {
    const what = found.length === 0 ? 'none of them' : found.join(' and ');
    report(
      '',
      `Exactly one of ${SHAPES.join(', ')} must state where the values are; found ${what}`,
    );
    return;
  }
  for (const name of RULES[shape].needs) {
    if (mapping[name] === undefined) report('', `With ${shape}, the member "${name}" is required`);
  }
  for (const name of RULES[shape].refuses) {
    if (mapping[name] !== undefined) report(`/${name}`, `With ${shape}, "${name}" is not allowed`);
  }
}

function checkRows(mapping: Mapping, report: Report): void {
  const header = headerOf(mapping);
  const { cell, startsWith } = mapping.vintage ?? {};
  const place = cell === undefined ? null : cellPlace(cell);
  if (cell !== undefined && !place) {
    report('/vintage/cell', 'A cell is letters and a number, such as A4');
  }
  if (header === null) {
    if (mapping.rows?.first === undefined) return;
    report('/rows/first', 'Omit it: the values begin below a header that is found by its content');
    return;
  }
  if (startsWith !== undefined) {
    report('/vintage/startsWith', 'It requires a header that is found by its content');
  }
  const first = firstBelow(mapping, header);
  if (first <= header) report('/rows/first', 'The first line with values must follow the header');
  if (place && place.line >= first) {
    report('/vintage/cell', 'The cell must be above the values');
  }
  for (const [index, { row }] of (mapping.expect ?? []).entries()) {
    if (row >= first) report(`/expect/${index}/row`, 'The line must be above the values');
  }
  for (const name of ['dateColumns', 'rates'] as const) {
    if (header === 0 && mapping[name]) report(`/${name}`, 'It requires a header line');
  }
}

/** Yields the references to columns, with their pointers. */
function* columnsOf(mapping: Mapping): Generator<[pointer: string, column: ColumnRef]> {
  function* within(value: unknown, pointer: string): Generator<[string, ColumnRef]> {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, inner] of Object.entries(value)) {
      const isReference = ['column', 'low', 'mid', 'high', 'first', 'last'].includes(name);
      if (isReference && pointer !== '/rows' && typeof inner !== 'object') {
        yield [pointerTo(pointer, name), inner as ColumnRef];
      } else if (name !== 'translate') yield* within(inner, pointerTo(pointer, name));
    }
  }
  const { prices: _, products: __, values: ___, columns, units, ...rest } = mapping;
  yield* within(rest, '');
  if (Array.isArray(columns)) yield* within(columns, '/columns');
  else for (const name of Object.keys(columns ?? {})) yield [pointerTo('/columns', name), name];
  for (const name of Object.keys(units ?? {})) yield [pointerTo('/units', name), name];
}

/** Without a header, columns are named by letters. */
function checkColumns(mapping: Mapping, report: Report): void {
  if (headerOf(mapping) !== 0) return;
  for (const [pointer, column] of columnsOf(mapping)) {
    if (typeof column === 'number' || indexOfLetters(column) >= 0) continue;
    report(pointer, 'Without a header, a column is letters such as C, or its place from 1');
  }
}

/** Parses the pattern of a member; null after reporting an invalid one. */
function checkPattern(
  text: string | undefined,
  pointer: string,
  report: Report,
): DatePattern | null {
  if (text === undefined) return null;
  try {
    return datePattern(text);
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    report(`${pointer}/pattern`, `Not a pattern: ${error.message}`);
    return null;
  }
}

function checkDate(source: DateNotation | undefined, pointer: string, report: Report): void {
  for (const text of [source?.pattern ?? []].flat()) {
    const pattern = checkPattern(text, pointer, report);
    const period = source?.period;
    if (!pattern || period === undefined) continue;
    if (PERIODS.indexOf(period) < PERIODS.indexOf(pattern.period)) {
      report(`${pointer}/period`, `The pattern states no ${period}, only the ${pattern.period}`);
    }
  }
}

function checkVintage({ vintage }: Mapping, report: Report): void {
  const pattern = checkPattern(vintage?.pattern, '/vintage', report);
  if (pattern && pattern.period !== 'day') report('/vintage/pattern', 'A vintage is a day');
  if (vintage?.constant !== undefined && !isDay(vintage.constant)) {
    report('/vintage/constant', 'A vintage is a day, written YYYY-MM-DD');
  }
}

/** Checks that the members yield a complete publication time. */
function checkPublication({ publishedAt = {} }: Mapping, report: Report): void {
  const { column, constant, time, offset } = publishedAt;
  if (constant !== undefined && !isInstant(constant)) {
    report(
      '/publishedAt/constant',
      'A publication time is written 2026-03-05T16:00:00Z (RFC 3339)',
    );
  }
  if (time !== undefined && !/^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$/.test(time)) {
    report('/publishedAt/time', 'A time of day is written 16:00 or 16:00:00');
  }
  if (offset !== undefined && !/^(Z|[-+]([01]\d|2[0-3]):[0-5]\d)$/.test(offset)) {
    report('/publishedAt/offset', 'An offset is Z or such as +08:00');
  }
  const pattern = checkPattern(publishedAt.pattern, '/publishedAt', report);
  if (column === undefined || !pattern) return;
  const { hasTime, hasOffset } = pattern;
  if (pattern.period !== 'day') report('/publishedAt/pattern', 'A publication time needs a day');
  if (hasTime === (time !== undefined)) {
    const found = hasTime ? 'both' : 'neither';
    report('/publishedAt', `The time of day comes from the pattern or from time; found ${found}`);
  }
  if (hasOffset === (offset !== undefined)) {
    const found = hasOffset ? 'both' : 'neither';
    report('/publishedAt', `The offset comes from the pattern or from offset; found ${found}`);
  }
}

function checkPublished(published: Published | undefined, pointer: string, report: Report): void {
  const { currency, unit } = published ?? {};
  const stated = typeof currency === 'string' ? currency : null;
  const problem = quotationProblem(stated, typeof unit === 'string' ? unit : null);
  if (problem !== null) report(pointer, problem);
  if (typeof currency !== 'object') return;
  for (const [name, each] of Object.entries(currency.translate ?? {})) {
    const wrong = quotationProblem(each, null);
    if (wrong !== null) report(pointerTo(`${pointer}/currency/translate`, name), wrong);
  }
}

const NO_CODE = 'A code has 1 to 64 visible ASCII characters';

function checkCodes(mapping: Mapping, report: Report): void {
  const { code, columns = {}, prices = [] } = mapping;
  const once = (codes: Iterable<readonly [pointer: string, code: string]>): void => {
    const seen = new Set<string>();
    for (const [pointer, each] of codes) {
      if (!isCode(each)) report(pointer, NO_CODE);
      if (seen.has(each.toLowerCase())) report(pointer, `${each} appears twice`);
      seen.add(each.toLowerCase());
    }
  };
  if (code?.constant !== undefined) once([['/code/constant', code.constant]]);
  if (code?.others !== undefined && code.translate === undefined) {
    report('/code/others', '"others" goes with translate only');
  }
  for (const [name, each] of Object.entries(code?.translate ?? {})) {
    if (!isCode(each)) report(pointerTo('/code/translate', name), NO_CODE);
  }
  if (Array.isArray(columns)) {
    once(columns.map((each, index) => [`/columns/${index}/code`, each.code] as const));
    for (const [index, each] of columns.entries()) {
      checkPublished(each.published, `/columns/${index}/published`, report);
    }
  } else {
    once(Object.entries(columns).map(([name, each]) => [pointerTo('/columns', name), each]));
  }
  once(prices.map((each, index) => [`/prices/${index}/code`, each.code] as const));
}

function checkNumbers({ numbers = {} }: Mapping, report: Report): void {
  const { decimal = 'point', thousands = 'none' } = numbers;
  if (decimal !== thousands) return;
  report('/numbers/thousands', 'Decimals and thousands need different separators');
}

/** Checks the rules between members of a well-formed mapping. */
export function checkMapping(mapping: Mapping): MappingFault[] {
  const faults: MappingFault[] = [];
  const report: Report = (pointer, message) => faults.push({ pointer, message });
  checkShape(mapping, report);
  checkRows(mapping, report);
  checkColumns(mapping, report);
  checkDate(mapping.date, '/date', report);
  checkDate(mapping.dateColumns, '/dateColumns', report);
  checkVintage(mapping, report);
  checkPublication(mapping, report);
  checkCodes(mapping, report);
  checkPublished(mapping.published, '/published', report);
  checkNumbers(mapping, report);
  return faults;
}
