import type { StagedValue } from '../load/validate.ts';

/**
 * Temporary tables are unlogged and go with the connection. `load_value` holds points and rates
 * alike (a rate in `mid`); its numbers are typed here once, so that no later step sees text.
 * `load_subject` has the prices or currencies, `load_change` the values that have to be compared.
 * `load_value` has no mid for a day whose value is to be withdrawn.
 * A value is known by its line, subject and place: a line of a table may have several of a price.
 */
export const TABLES = `
drop table if exists pg_temp.load_value, pg_temp.load_subject, pg_temp.load_change;
create temp table load_value (
  line bigint not null,
  subject integer not null,
  date date not null,
  low numeric,
  mid numeric,
  high numeric,
  published_at timestamptz,
  place integer not null default 0,
  written text
);
create temp table load_subject (
  subject integer primary key,
  name text not null,
  key text not null,
  described boolean not null,
  id integer,
  rows bigint not null,
  first_date date,
  last_date date,
  is_ascending boolean not null,
  is_smooth boolean not null,
  has_now boolean not null default false,
  has_past boolean not null default false,
  is_careful boolean not null default false,
  is_refused boolean not null default false,
  rejected_line bigint,
  before numeric[],
  after numeric[]
);
create temp table load_change (
  source text,
  line bigint,
  subject integer,
  id integer,
  date date not null,
  low numeric,
  mid numeric,
  high numeric,
  published_at timestamptz,
  place integer,
  written text,
  low_before numeric,
  mid_before numeric,
  high_before numeric,
  state text not null,
  corrections integer,
  batch_id integer,
  first_line bigint,
  beside numeric[]
)`;

/** Takes the staging tables away at once: a connection that is used again would keep them. */
export const UNSTAGE = 'drop table pg_temp.load_value, pg_temp.load_subject, pg_temp.load_change';

const COLUMNS = ['line', 'subject', 'date', 'low', 'mid', 'high', 'published_at'];
const PLACED_COLUMNS = [...COLUMNS, 'place', 'written'];

/** The statement that takes the lines; with places for a file whose columns have own names. */
export const copyStatement = (hasPlaces: boolean): string =>
  `copy pg_temp.load_value (${(hasPlaces ? PLACED_COLUMNS : COLUMNS).join(', ')}) from stdin`;

/** A text as COPY's text format writes it. */
const copyEscaped = (text: string): string =>
  text.replace(/[\\\t\n\r]/g, (character) => `\\${character}`);

/** One line of COPY in text format. Nothing in it needs an escape: all of it was validated. */
export const copyLine = (line: number, subject: number, value: StagedValue): string => {
  const { date, low, mid, high, publishedAt } = value;
  const range = `${low ?? '\\N'}\t${mid ?? '\\N'}\t${high ?? '\\N'}`;
  return `${line}\t${subject}\t${date}\t${range}\t${publishedAt ?? '\\N'}\n`;
};

/** The same with the place, and the values as they were written: any text. */
export const placedLine = (plain: string, place: number, written: string | null): string => {
  const text = written === null ? '\\N' : copyEscaped(written);
  return `${plain.slice(0, -1)}\t${place}\t${text}\n`;
};
