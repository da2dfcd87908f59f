import { type CalendarFile, checkCalendarFile } from '../../calendar/definition.ts';
import { readYaml, type YamlKind, type YamlPlace } from '../mapping/yaml.ts';
import { type LoadErrorCode, problemOf } from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import type { SourceFile } from '../records/source-file.ts';

/** 20,000 prices and a century of holidays take less than half of it. */
const KIND: YamlKind = { name: 'calendar file', bytesMax: 2_097_152 };

/** A calendar file and the places of its members. */
export interface PlacedCalendarFile {
  readonly file: CalendarFile;
  /** The names of its holiday lists and calendars, of those with faults too. */
  readonly named: Readonly<Record<'holidays' | 'calendars', readonly string[]>>;
  /** Reports a problem of a member, given by its JSON pointer. */
  report(code: LoadErrorCode, message: string, pointer: string, value?: string): void;
}

/** The bytes of a file, up to one more than a calendar file may have. */
async function bytesOf(source: SourceFile): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of source.bytes()) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > KIND.bytesMax) break;
  }
  return Buffer.concat(chunks);
}

/**
 * Reads a calendar file, and reports its faults with their lines and columns.
 * @returns the entries without faults
 */
export async function readCalendarFile(
  source: SourceFile,
  problems: Problems,
): Promise<PlacedCalendarFile> {
  const { value, places, violations } = readYaml(await bytesOf(source), KIND);
  const placeOf = (pointer: string): YamlPlace => {
    let place = pointer;
    while (place !== '' && !places.has(place)) place = place.replace(/\/[^/]*$/, '');
    return places.get(place) ?? { line: 1, column: 1 };
  };
  const reportAt = (
    code: LoadErrorCode,
    message: string,
    pointer: string,
    { line, column }: YamlPlace,
    text: string | null,
  ): void => {
    const name = pointer === '' ? null : pointer.slice(1).replaceAll('/', '.');
    problems.refuse(
      problemOf(code, message, { line, position: column, column: name, value: text }),
    );
  };
  const report: PlacedCalendarFile['report'] = (code, message, pointer, text) =>
    reportAt(code, message, pointer, placeOf(pointer), text ?? null);
  for (const { line, column = 1, pointer, message } of violations) {
    reportAt('invalid_yaml', message, pointer, { line, column }, null);
  }
  if (violations.length > 0) return { file: NOTHING, named: NOTHING_NAMED, report };
  if (value === null) {
    report('empty_file', 'The file states no holidays, calendars or prices', '');
    return { file: NOTHING, named: NOTHING_NAMED, report };
  }
  const { file, faults } = checkCalendarFile(value);
  for (const { pointer, message } of faults) report('invalid_calendar', message, pointer);
  if (faults.length === 0 && file.holidays.size + file.calendars.size + file.prices.size === 0) {
    report('empty_file', 'The file states no holidays, calendars or prices', '');
  }
  const namesIn = (section: string): readonly string[] =>
    Object.keys((value as Readonly<Record<string, object | undefined>>)[section] ?? {});
  const named = { holidays: namesIn('holidays'), calendars: namesIn('calendars') };
  return { file, named, report };
}

const NOTHING_NAMED: PlacedCalendarFile['named'] = { holidays: [], calendars: [] };

const NOTHING: CalendarFile = { holidays: new Map(), calendars: new Map(), prices: new Map() };
