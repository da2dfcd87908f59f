import type { Report } from './check.ts';
import {
  type DatePattern,
  datePattern,
  PatternError,
  PERIODS,
  type Period,
} from './date-pattern.ts';
import type { Mapping, PublicationSource } from './schema.ts';

/** A value has one source, and some members go with one of them only. */
function checkSource(
  source: Readonly<Record<string, unknown>> | undefined,
  pointer: string,
  rules: { readonly sources: readonly string[]; readonly columnOnly: readonly string[] },
  report: Report,
): void {
  if (!source) return;
  const found = rules.sources.filter((name) => source[name] !== undefined);
  if (found.length !== 1) {
    const what = found.length === 0 ? 'none of them' : found.join(' and ');
    report(pointer, `Exactly one of ${rules.sources.join(', ')} is needed; found ${what}`);
    return;
  }
  for (const name of rules.columnOnly) {
    if (source[name] === undefined || source['column'] !== undefined) continue;
    report(`${pointer}/${name}`, `"${name}" goes with a column only`);
  }
}

/** The pattern of a member, if it has one that is right; what is wrong is reported. */
function checkPattern(text: string | undefined, pointer: string, report: Report) {
  if (text === undefined) return null;
  try {
    return datePattern(text);
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    report(`${pointer}/pattern`, `Not a pattern: ${error.message}`);
    return null;
  }
}

function checkDate(
  source: { pattern?: string; period?: Period } | undefined,
  pointer: string,
  report: Report,
): void {
  const pattern = checkPattern(source?.pattern, pointer, report);
  const period = source?.period;
  if (!pattern || period === undefined) return;
  if (PERIODS.indexOf(period) < PERIODS.indexOf(pattern.period)) {
    report(`${pointer}/period`, `The pattern tells no ${period}, only the ${pattern.period}`);
  }
}

/** What is needed to make moments of the texts of a pattern. */
function checkMoments(source: PublicationSource, pattern: DatePattern, report: Report): void {
  if (pattern.period !== 'day') report('/publishedAt/pattern', 'A moment needs a day');
  if (pattern.hasTime === (source.time !== undefined)) {
    const found = pattern.hasTime ? 'both' : 'neither';
    report('/publishedAt', `The time of day comes from the pattern or from time; found ${found}`);
  }
  if (pattern.hasOffset === (source.offset !== undefined)) {
    const found = pattern.hasOffset ? 'both' : 'neither';
    report('/publishedAt', `The offset comes from the pattern or from offset; found ${found}`);
  }
}

function checkPublication(mapping: Mapping, report: Report): void {
  const source = mapping.publishedAt;
  if (!source) return;
  const { column, constant, time, days, offset } = source;
  const pattern = checkPattern(source.pattern, '/publishedAt', report);
  if (column !== undefined && constant !== undefined) {
    report('/publishedAt', 'column and constant cannot stand together');
  }
  if (constant !== undefined && (time ?? days ?? offset ?? source.pattern) !== undefined) {
    report('/publishedAt', 'A constant moment needs nothing beside it');
  }
  if (column === undefined && constant === undefined && (time ?? offset) === undefined) {
    report('/publishedAt', 'Give a column, a constant, or time and offset');
  }
  if (column === undefined && (time === undefined) !== (offset === undefined)) {
    report('/publishedAt', 'A time of day needs its offset from UTC, and the reverse');
  }
  if (column === undefined && source.pattern !== undefined) {
    report('/publishedAt/pattern', '"pattern" goes with a column only');
  }
  if (column !== undefined && days !== undefined) {
    report('/publishedAt/days', '"days" goes with a time of day, without a column');
  }
  if (column !== undefined && pattern) checkMoments(source, pattern, report);
  if (time !== undefined && !/^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$/.test(time)) {
    report('/publishedAt/time', 'A time of day is written 16:00 or 16:00:00');
  }
  if (offset !== undefined && !/^(Z|[-+]([01]\d|2[0-3]):[0-5]\d)$/.test(offset)) {
    report('/publishedAt/offset', 'An offset is Z or such as +08:00');
  }
}

/** Checks where code, date, publication time and vintage come from. */
export function checkSources(mapping: Mapping, report: Report): void {
  const { code, date, dateColumns, vintage } = mapping;
  const codes = {
    sources: ['column', 'constant'],
    columnOnly: ['translate', 'others', 'fillDown'],
  };
  checkSource(code, '/code', codes, report);
  if (code?.others !== undefined && code.translate === undefined) {
    report('/code/others', '"others" goes with translate only');
  }
  const dates = { sources: ['column', 'constant', 'cell'], columnOnly: ['fillDown'] };
  checkSource(date, '/date', dates, report);
  checkDate(date, '/date', report);
  checkDate(dateColumns, '/dateColumns', report);
  checkSource(vintage, '/vintage', { ...dates, columnOnly: [] }, report);
  const pattern = checkPattern(vintage?.pattern, '/vintage', report);
  if (pattern && pattern.period !== 'day') report('/vintage/pattern', 'A vintage is a day');
  if (dateColumns && (mapping.rows?.header ?? 1) === 0) {
    report('/dateColumns', 'Dates in headings need a header');
  }
  checkPublication(mapping, report);
}
