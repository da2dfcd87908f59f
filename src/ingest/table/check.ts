import { isDay, isInstant } from '../parsing/dates.ts';
import { cellPlace, indexOfLetters } from '../parsing/xlsx-rows.ts';
import { isCode } from '../subjects.ts';
import { checkSources } from './check-sources.ts';
import type { Mapping, Published } from './schema.ts';
import type { ColumnRef } from './schema-parts.ts';
import { factorOf, termsProblem } from './terms.ts';
import { pointerTo } from './yaml.ts';

/** A rule that a mapping breaks, at a member. */
interface Breach {
  readonly pointer: string;
  readonly message: string;
}

export type Report = (pointer: string, message: string) => void;

/** The first line with values, and the line with the names of the columns (0 for none). */
export const bordersOf = ({ rows = {} }: Mapping): { header: number; first: number } => {
  const header = rows.header ?? 1;
  return { header, first: rows.first ?? header + 1 };
};

/** A table has one of three shapes, and each needs other members. */
function checkShape(mapping: Mapping, report: Report): void {
  const shapes = (['mid', 'columns', 'dateColumns'] as const).filter(
    (name) => mapping[name] !== undefined,
  );
  if (shapes.length !== 1) {
    const found = shapes.length === 0 ? 'none of them' : shapes.join(' and ');
    report('', `Exactly one of mid, columns and dateColumns says where values are; found ${found}`);
    return;
  }
  const [shape = 'mid'] = shapes;
  const rules = {
    mid: { needs: ['code', 'date'], refuses: [] },
    columns: { needs: ['date'], refuses: ['code', 'low', 'high'] },
    dateColumns: { needs: ['code'], refuses: ['date', 'low', 'high'] },
  } as const;
  for (const name of rules[shape].needs) {
    if (mapping[name] === undefined) report('', `With ${shape}, the member "${name}" is needed`);
  }
  for (const name of rules[shape].refuses) {
    if (mapping[name] !== undefined) report(`/${name}`, `With ${shape}, "${name}" has no meaning`);
  }
}

function checkRows(mapping: Mapping, report: Report): void {
  const { header, first } = bordersOf(mapping);
  const { last, stop } = mapping.rows ?? {};
  if (first <= header) report('/rows/first', 'The first line with values stands after the header');
  if (last !== undefined && last < first) {
    report('/rows/last', 'The last line with values stands before the first');
  }
  if (stop && (stop.column === undefined) !== (stop.startsWith === undefined)) {
    report('/rows/stop', 'column and startsWith belong together');
  }
  if (stop && stop.blank === undefined && stop.column === undefined) {
    report('/rows/stop', 'Give blank, or column and startsWith');
  }
  for (const [index, { row }] of (mapping.expect ?? []).entries()) {
    if (row >= first) report(`/expect/${index}/row`, 'Only lines above the values are compared');
  }
  for (const name of ['date', 'vintage'] as const) {
    const cell = mapping[name]?.cell;
    if (cell === undefined) continue;
    const place = cellPlace(cell);
    if (!place) report(`/${name}/cell`, 'A cell is letters and a number, such as A4');
    else if (place.line >= first) report(`/${name}/cell`, 'The cell must stand above the values');
  }
}

/** References to columns, with their pointers. */
function* columnsOf(mapping: Mapping): Generator<[pointer: string, column: ColumnRef]> {
  function* within(value: unknown, pointer: string): Generator<[string, ColumnRef]> {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, inner] of Object.entries(value)) {
      const isReference = ['column', 'low', 'mid', 'high', 'first', 'last'].includes(name);
      const isLine = pointer === '/rows';
      if (isReference && !isLine && typeof inner !== 'object') {
        yield [pointerTo(pointer, name), inner as ColumnRef];
      } else if (name !== 'translate') yield* within(inner, pointerTo(pointer, name));
    }
  }
  const { prices: _, products: __, values: ___, columns, ...rest } = mapping;
  yield* within(rest, '');
  if (Array.isArray(columns)) yield* within(columns, '/columns');
  else for (const name of Object.keys(columns ?? {})) yield [pointerTo('/columns', name), name];
}

/** Without a header, columns have no names but letters. */
function checkColumns(mapping: Mapping, report: Report): void {
  if (bordersOf(mapping).header > 0) return;
  for (const [pointer, column] of columnsOf(mapping)) {
    if (typeof column === 'number' || indexOfLetters(column) >= 0) continue;
    report(pointer, 'Without a header, a column is letters such as C, or its place from 1');
  }
}

function checkPublished(published: Published | undefined, pointer: string, report: Report): void {
  if (!published) return;
  const { currency, unit, factor } = published;
  if (factor !== undefined && factorOf(String(factor)) === null) {
    report(`${pointer}/factor`, 'A factor is a decimal greater than 0');
  }
  const stated = typeof currency === 'string' ? currency : null;
  const problem = termsProblem(stated, typeof unit === 'string' ? unit : null);
  if (problem !== null) report(pointer, problem);
  if (typeof currency !== 'object') return;
  for (const [name, each] of Object.entries(currency.translate ?? {})) {
    const wrong = termsProblem(each, null);
    if (wrong !== null) report(pointerTo(`${pointer}/currency/translate`, name), wrong);
  }
}

function checkCodes(mapping: Mapping, report: Report): void {
  const { code, columns = {}, prices = [] } = mapping;
  const once = (codes: Iterable<readonly [pointer: string, code: string]>): void => {
    const seen = new Set<string>();
    for (const [pointer, each] of codes) {
      if (!isCode(each)) report(pointer, 'A code has 1 to 64 visible ASCII characters');
      if (seen.has(each.toLowerCase())) report(pointer, `${each} is there twice`);
      seen.add(each.toLowerCase());
    }
  };
  if (code?.constant !== undefined) once([['/code/constant', code.constant]]);
  for (const [name, each] of Object.entries(code?.translate ?? {})) {
    if (!isCode(each)) {
      report(pointerTo('/code/translate', name), 'A code has 1 to 64 visible ASCII characters');
    }
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

function checkText({ text = {}, numbers = {} }: Mapping, report: Report): void {
  const { decimal = 'point', thousands = 'none' } = numbers;
  if (decimal === thousands) {
    report('/numbers/thousands', 'The same sign cannot stand before decimals and thousands');
  }
  const quotesSpaces = text.delimiter === 'spaces' && (text.quote ?? 'none') !== 'none';
  if (quotesSpaces) report('/text/quote', 'Fields between spaces have no quotation marks');
}

function checkVintage({ vintage }: Mapping, report: Report): void {
  if (vintage?.constant === undefined || isDay(vintage.constant)) return;
  report('/vintage/constant', 'A vintage is a day, written YYYY-MM-DD');
}

function checkConstants({ date, publishedAt }: Mapping, report: Report): void {
  if (date?.constant !== undefined && !isDay(date.constant)) {
    report('/date/constant', 'A date is a real day, written YYYY-MM-DD');
  }
  const moment = publishedAt?.constant;
  if (moment !== undefined && !isInstant(moment)) {
    report('/publishedAt/constant', 'A moment is written 2026-03-05T16:00:00Z (RFC 3339)');
  }
}

/** The rules that a mapping breaks although each of its members is well-formed. */
export function checkMapping(mapping: Mapping): Breach[] {
  const breaches: Breach[] = [];
  const report: Report = (pointer, message) => breaches.push({ pointer, message });
  checkShape(mapping, report);
  checkRows(mapping, report);
  checkColumns(mapping, report);
  checkSources(mapping, report);
  checkConstants(mapping, report);
  checkVintage(mapping, report);
  checkCodes(mapping, report);
  checkPublished(mapping.published, '/published', report);
  checkText(mapping, report);
  return breaches;
}
