import { SPANS } from '../catalog/analytics.ts';
import { CSV_GROUPS, csvColumns, dimensionFields } from '../contract/csv.ts';
import type { Receipt } from '../conversion/receipt.ts';
import type { Change, Observed, Summary } from '../conversion/summary.ts';
import type { Contents, Terms } from './contents.ts';
import { slicesOfRows } from './csv-rows.ts';
import type { Writer } from './formats.ts';
import { membersOf } from './record.ts';

/** What spreadsheets take for a formula when a text begins with it. */
const FORMULA = /^[=+\-@\t\r]/;

/**
 * Cells that RFC 4180 quotes, and those with a semicolon: spreadsheets of many countries separate
 * cells by it.
 */
const QUOTED = /[",;\r\n]/;

/**
 * A text as a cell. One that a spreadsheet would run as a formula gets an apostrophe before it,
 * which spreadsheets take for "this is text".
 */
export function textCell(text: string | null): string {
  if (text === null) return '';
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return QUOTED.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const nothing = (columns: readonly string[]): string[] => columns.map(() => '');

type Members = ReturnType<typeof membersOf>;

/** A reference of a record; which ones there are depends on the market. */
const nameOf = (members: Members, field: string): string | null => {
  const reference = (members as Readonly<Record<string, unknown>>)[field];
  return (reference as { readonly name: string } | null)?.name ?? null;
};

const namesOf = (terms: Terms, members: Members): string[] => [
  ...[members.name, members.shortName].map(textCell),
  ...['product', 'priceCategory', 'priceType', 'frequency'].map((field) =>
    textCell(nameOf(members, field)),
  ),
  ...dimensionFields(terms.plan.market).map((field) => textCell(nameOf(members, field))),
];

interface Product {
  readonly alias: string;
  readonly chemicalCode: string;
  readonly isSustainable: boolean;
}

function aboutOf(members: Members): string[] {
  const { alias, chemicalCode, isSustainable } = members.product as Product;
  const specification = members.specification.map(({ name, value }) => `${name}: ${value}`);
  return [
    textCell(alias),
    textCell(chemicalCode),
    String(isSustainable),
    textCell(specification.join('; ')),
    members.assessmentLaunchedAt ?? '',
    members.lastAssessedAt ?? '',
    members.latestPublishedAt ?? '',
  ];
}

function conversionOf(receipt: Receipt | null, reason: Receipt['reason']): string[] {
  if (receipt === null) return nothing(CSV_GROUPS.conversion);
  const { status, from, to, unitFactor, source, rounding } = receipt;
  return [
    status,
    reason ?? '',
    ...[from, to].flatMap((each) => [each.currency ?? '', textCell(each.unitOfMeasure)]),
    unitFactor?.multiply ?? '',
    unitFactor?.divide ?? '',
    textCell(source),
    textCell(rounding),
  ];
}

const observedCells = (each: Observed | null): string[] => [each?.date ?? '', each?.mid ?? ''];

const changeCells = (each: Change | null): string[] => [
  each?.absolute ?? '',
  each?.percent ?? '',
  each?.baseDate ?? '',
];

function summaryCells(summary: Summary | null): string[] {
  if (summary === null) return nothing(CSV_GROUPS.summary);
  const { latest, previous, changes } = summary;
  return [
    ...observedCells(latest),
    ...observedCells(previous),
    ...SPANS.flatMap((span) => changeCells(changes[span])),
  ];
}

/** The rows of one record: one for each point, and one without values where there is none. */
function* recordRows(terms: Terms, contents: Contents): Generator<Buffer> {
  const { shown, receipt, summary, points } = contents;
  const members = membersOf(terms.plan.market, contents.price, terms.references, shown);
  const cells = (...values: readonly string[]) => Buffer.from(values.join(','));
  const endCells = (reason: Receipt['reason']) =>
    cells('', ...conversionOf(receipt, reason), ...summaryCells(summary));
  const reason = receipt?.reason ?? null;
  yield* slicesOfRows(points, {
    code: cells(textCell(members.code), ''),
    terms: cells('', textCell(shown.currency?.iso ?? null), textCell(shown.unitOfMeasure.name), ''),
    about: cells('', ...namesOf(terms, members), ...aboutOf(members), ''),
    withoutPoints: endCells(reason),
    // Of a partial record the reason explains the points without a rate, and no others.
    converted: endCells(receipt?.status === 'partial' ? null : reason),
    unconverted: endCells('no-rate'),
  });
}

const NOTHING = Buffer.alloc(0);

/** `text/csv` as RFC 4180 has it, with a row of column names. */
export const csvWriter: Writer = {
  head: ({ context }) => [Buffer.from(`${csvColumns(context.plan.market).join(',')}\r\n`)],
  record: recordRows,
  between: NOTHING,
  end: NOTHING,
};
