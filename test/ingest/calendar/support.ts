import type t from 'tap';
import type { Client } from '../../../src/db/client.ts';
import {
  type CalendarReport,
  type CalendarRequest,
  loadCalendar,
} from '../../../src/ingest/calendar/load-calendar.ts';
import { fileOf } from '../support/loading.ts';

type Test = Pick<typeof t, 'teardown'>;

/** Loads a calendar file with this content. */
export const loadCalendarText = async (
  test: Test,
  client: Client,
  content: string | Uint8Array,
  options: Partial<CalendarRequest> = {},
): Promise<CalendarReport> =>
  loadCalendar(client, {
    file: await fileOf(test, content, 'calendars.yaml'),
    actor: 'tester',
    ...options,
  });

/** A list, a calendar and two prices that follow it. */
export const CALENDARS = `holidays:
  london:
    source: a test
    from: 2025-01-01
    until: 2026-12-31
    days:
      2026-12-25: Christmas Day
calendars:
  weekly:
    rule: { weekly: [friday] }
    at: 16:00
    zone: Europe/London
    holidays: london
    policy: nearest
prices:
  XX-1: weekly
  xx-2: weekly
`;
