import type pg from 'pg';
import {
  type CalendarDefinition,
  calendarFaults,
  type HolidayList,
  listFaults,
} from '../calendar/definition.ts';
import { type BrokenRow, everyVersion, type Rule } from './rule.ts';

/** A version of a holiday list or calendar. */
interface Version {
  readonly table: string;
  readonly slug: string;
  readonly revision: string;
}

const LISTS = everyVersion(
  'holiday_list',
  `slug, source, known_from as "from", known_until as until, days, working_days as "workingDays"`,
);
const CALENDARS = everyVersion(
  'calendar',
  `slug, rule, due_time as at, zone, policy, make_up_days as "makeUpDays",
    (select max(l.slug) from ${everyVersion('holiday_list', 'id, slug')} l
      where l.id = holiday_list_id) as holidays`,
);

async function faultyVersions(driver: pg.ClientBase): Promise<BrokenRow[]> {
  const lists = await driver.query<Version & HolidayList>(`select * from ${LISTS} v`);
  const calendars = await driver.query<Version & CalendarDefinition>(
    `select * from ${CALENDARS} v`,
  );
  return [
    ...lists.rows.map(({ table, slug, revision, ...list }) => {
      const { from, until, source, days, workingDays } = list;
      const faults = listFaults({ from, until, source, days, workingDays });
      return { table, slug, revision, faults };
    }),
    ...calendars.rows.map(({ table, slug, revision, ...calendar }) => {
      const { rule, at, zone, holidays, policy, makeUpDays } = calendar;
      const faults = calendarFaults({ rule, at, zone, holidays, policy, makeUpDays });
      return { table, slug, revision, faults };
    }),
  ]
    .filter(({ faults }) => faults.length > 0)
    .map(({ faults, ...version }) => ({
      ...version,
      faults: faults.map(({ pointer, message }) => `${pointer}: ${message}`).join('; '),
    }));
}

/** Rules of publication calendars, past versions included. */
export const CALENDAR_RULES: readonly Rule[] = [
  {
    name: 'calendars-formed',
    meaning: 'Every holiday list and calendar is one that a calendar file could state.',
    broken: faultyVersions,
  },
];
