import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { type CalendarFile, checkCalendarFile } from '../src/calendar/definition.ts';

const FILE = new URL('./calendars.yaml', import.meta.url);

/** The calendars of the sample prices, a calendar file like those of `load calendar`. */
export async function sampleCalendars(): Promise<CalendarFile> {
  const { file, faults } = checkCalendarFile(parse(await readFile(FILE, 'utf8')));
  const [fault] = faults;
  if (fault !== undefined)
    throw new Error(`seeds/calendars.yaml${fault.pointer}: ${fault.message}`);
  return file;
}
