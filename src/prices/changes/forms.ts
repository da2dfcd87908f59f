import type { ChangeOperation } from '../../contract/schemas/changes.ts';
import { instantOf } from '../../db/instant.ts';
import { textCell } from '../../std/csv.ts';
import { decimalOf, decimalText } from '../../std/decimal.ts';
import type { PointValue } from './values.ts';

/** The form of the changes of a page: a JSON object each, or a row of CSV each. */
export type ChangeForm = 'json' | 'csv';

/** The members that each change has. */
interface ChangeMembers {
  readonly seq: string;
  readonly recordedAt: string;
  readonly operation: ChangeOperation;
  readonly market: string;
  readonly code: string;
  readonly date: string | null;
  readonly revision: string;
}

/** The values before and after a change; those of a price are the text of a JSON object. */
export type ChangeValues =
  | { readonly of: 'price'; readonly before: string | null; readonly after: string | null }
  | { readonly of: 'point'; readonly before: PointValue | null; readonly after: PointValue | null };

/** A number with every stored digit. */
const numberText = (text: string): string => decimalText(decimalOf(text));

const jsonNumber = (text: string | null): string => (text === null ? 'null' : numberText(text));

function pointText(value: PointValue | null): string {
  if (value === null) return 'null';
  const [low, mid, high] = [value.low, value.mid, value.high].map(jsonNumber);
  const publishedAt = instantOf(value.publishedAt);
  return (
    `{"low":${low},"mid":${mid},"high":${high},` +
    `"publishedAt":"${publishedAt}","corrections":${value.corrections}}`
  );
}

function jsonText(change: ChangeMembers, values: ChangeValues): string {
  const [before, after] =
    values.of === 'price'
      ? [values.before, values.after]
      : [pointText(values.before), pointText(values.after)];
  const { seq, recordedAt, operation, revision } = change;
  const [market, code, date] = [change.market, change.code, change.date].map((each) =>
    JSON.stringify(each),
  );
  return (
    `{"seq":"${seq}","recordedAt":"${recordedAt}","operation":"${operation}",` +
    `"market":${market},"code":${code},"date":${date},"revision":"${revision}",` +
    `"before":${before},"after":${after}}`
  );
}

const csvNumber = (text: string | null): string => (text === null ? '' : numberText(text));

/** The cells of a point, in the order of the columns of a side. */
const pointCells = (value: PointValue | null): readonly string[] =>
  value === null
    ? ['', '', '', '', '']
    : [
        ...[value.low, value.mid, value.high].map(csvNumber),
        instantOf(value.publishedAt),
        String(value.corrections),
      ];

/** A row of CSV, in the order of `CHANGE_COLUMNS`. */
function csvRow(change: ChangeMembers, values: ChangeValues): string {
  const [point, price] =
    values.of === 'point'
      ? [values, { before: null, after: null }]
      : [{ before: null, after: null }, values];
  const cells = [
    ...[change.seq, change.recordedAt, change.operation, change.market],
    ...[textCell(change.code), change.date ?? '', change.revision],
    ...pointCells(point.before),
    ...pointCells(point.after),
    ...[textCell(price.before), textCell(price.after)],
  ];
  return `${cells.join(',')}\r\n`;
}

/** The writer of each form. */
export const WRITERS: Readonly<
  Record<ChangeForm, (change: ChangeMembers, values: ChangeValues) => string>
> = { json: jsonText, csv: csvRow };
