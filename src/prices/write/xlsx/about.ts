import type { PlanOptionName } from '../../../contract/schemas/options.ts';
import { boundText } from '../../../std/days.ts';
import { masked, maskedEncoded } from '../../../std/secrets.ts';
import type { Answer } from '../../answer/answer.ts';
import { usedOptions } from '../../plan/options.ts';
import type { Plan } from '../../plan/plan.ts';
import { WARNINGS_PER_SLICE } from '../bytes.ts';
import type { Contents } from '../points.ts';
import { timeOf } from '../table.ts';
import { instantCell, numberCell, rowXml, STYLE, textCell } from './cells.ts';
import { citationOf, notesOf } from './citation.ts';
import { SHEET_END, type SheetTable, sheetStart } from './sheet.ts';

/** Widths of the columns in characters. */
const WIDTHS = [20, 60, 80];

/**
 * The sheet about an answer: its revision, request, units, sources, and all warnings.
 * @param found what was collected from its records
 * @param tables the sheets with its rows
 */
export function* aboutSheet(
  answer: Answer,
  found: Collected,
  tables: readonly SheetTable[],
): Generator<Buffer> {
  const rows = rowsBefore(answer, found, tables);
  const start = sheetStart(WIDTHS, { isFrozen: false, isFirst: false });
  yield Buffer.from(start + rows.map((cells, at) => rowText(cells, 1 + at)).join(''));
  const { warnings } = answer.metadata;
  for (let at = 0; at < warnings.length; at += WARNINGS_PER_SLICE) {
    const some = warnings.slice(at, at + WARNINGS_PER_SLICE);
    const xml = some.map(({ code, pointer, detail }, index) =>
      rowText([null, `${code} ${pointer}`, detail], 1 + rows.length + at + index),
    );
    yield Buffer.from(xml.join(''));
  }
  yield Buffer.from(SHEET_END);
}

/** Facts about the rows of an answer, collected while they are written. */
export class Collected {
  readonly units = new Tally();
  readonly vat = new Tally();
  readonly sources = new Tally();
  readonly rates = new Tally();
  samples = 0;
  readonly #answer: Answer;
  readonly #citations: string[] = [];
  #uncited = 0;

  constructor(answer: Answer) {
    this.#answer = answer;
  }

  add(contents: Contents): void {
    const { currencyAndUnit, receipt } = contents;
    const { currency, unitOfMeasure } = currencyAndUnit;
    this.units.add(
      currency === null ? unitOfMeasure.name : `${currency.iso}/${unitOfMeasure.name}`,
    );
    const { source, vat, isSample } = notesOf(contents);
    this.vat.add(vat);
    this.sources.add(source);
    this.rates.add(receipt?.source ?? null);
    if (isSample) this.samples += 1;
    if (this.#citations.length < LISTED_MAX)
      this.#citations.push(citationOf(contents, this.#answer));
    else this.#uncited += 1;
  }

  /** A citation of each price, of the first `LISTED_MAX`. */
  get citations(): string[] {
    return this.#uncited === 0
      ? this.#citations
      : [...this.#citations, `and ${this.#uncited} more prices`];
  }
}

/** Most texts of one list, such as the sources or the citations of the prices. */
const LISTED_MAX = 200;

/** Different texts in their order, with the number of prices that have each. */
class Tally {
  readonly #counts = new Map<string, number>();
  #others = 0;

  add(text: string | null): void {
    if (text === null) return;
    const count = this.#counts.get(text);
    if (count === undefined && this.#counts.size === LISTED_MAX) this.#others += 1;
    else this.#counts.set(text, (count ?? 0) + 1);
  }

  rows(label: string): Row[] {
    const rows = [...this.#counts].map(
      ([text, count], at): Row => [
        at === 0 ? label : null,
        text,
        count === 1 ? '1 price' : `${count} prices`,
      ],
    );
    return this.#others === 0 ? rows : [...rows, [null, 'and others', `${this.#others} prices`]];
  }
}

/** The cells of a row: a text, XML after its reference, or null for an empty one. */
type Row = readonly (string | { readonly xml: string } | null)[];

const number = (value: number) => ({ xml: numberCell(String(value)) });

const instant = (text: string) => ({ xml: instantCell(timeOf(text, 'instant')) });

/** An option as in an address. */
function optionText({ options }: Plan, name: PlanOptionName): string {
  const value = options[name];
  return typeof value === 'object' && value !== null
    ? `${value.period}:${value.method}`
    : String(value);
}

/** The filters and options of a request, in the notation of an address. */
function parametersOf(plan: Plan): (readonly [name: string, values: readonly string[]])[] {
  const { days, codes, lists, options, page } = plan;
  const bounds = [
    ['dateFrom', boundText(days.first)],
    ['dateTo', boundText(days.last)],
    ['limit', page.limit],
  ] as const;
  return [
    ...(codes === null ? [] : [['codes', codes] as const]),
    ...lists.map(({ name, values }) => [name, values] as const),
    ...bounds.flatMap(([name, value]) => (value === null ? [] : [[name, [`${value}`]] as const])),
    ...usedOptions(options).map((name) => [name, [optionText(plan, name)]] as const),
  ];
}

/** Maximum length of an address, as the service reads them. */
const ADDRESS_MAX = 8_192;

/**
 * The address of the same file; null if it would be too long, or repeat a secret. A page has none:
 * its cursor is not a part of the plan.
 */
function addressOf({ context: { plan }, metadata }: Answer): string | null {
  const { market, page } = plan;
  if (page.after !== null) return null;
  const query = new URLSearchParams();
  for (const [name, values] of parametersOf(plan)) {
    for (const value of values) query.append(name, value);
  }
  query.set('revision', metadata.revision);
  query.set('format', 'xlsx');
  const address = `/v3/prices/${market.slug}?${query}`;
  return address.length <= ADDRESS_MAX && maskedEncoded(address) === address ? address : null;
}

/** Sentences about the cells of a file. */
const NOTES = [
  'Numbers have every digit of the service in this file. A spreadsheet computes with 15 to 17 of ' +
    'them, and Excel shows 15: decimalsAsText=true writes all of them as text',
  'Times are in UTC, and dates are calendar days. Those before 1900-03-01 are text, because ' +
    'spreadsheets count them differently',
  'A sheet is full at 1,048,576 rows; further rows are in the next sheet',
];

/** A list of rows under one label. */
const labelled = (label: string, texts: readonly string[]): Row[] =>
  texts.map((text, at) => [at === 0 ? label : null, text]);

/** The rows before the warnings. */
function rowsBefore(answer: Answer, found: Collected, tables: readonly SheetTable[]): Row[] {
  const { metadata, context } = answer;
  const { plan } = context;
  const address = addressOf(answer);
  const after = plan.page.after?.code;
  return [
    ['Market', plan.market.name, plan.market.slug],
    ['Revision', metadata.revision],
    ['As of', instant(metadata.asOf), 'UTC'],
    ['Prices', number(metadata.count)],
    ...tables.map(({ name, lastRow }): Row => ['Rows', number(lastRow - 1), name]),
    ...(after === undefined ? [] : [['Page', `the prices after ${after}`]]),
    ...(metadata.nextCursor === null ? [] : [['Next page', metadata.nextCursor, 'cursor']]),
    ...parametersOf(plan).map(
      ([name, values], at): Row => [at === 0 ? 'Request' : null, name, masked(values.join('; '))],
    ),
    ...(address === null ? [] : [['Address', address]]),
    ...found.units.rows('Currency and unit'),
    ...found.vat.rows('VAT'),
    ...found.rates.rows('Exchange rates'),
    ...found.sources.rows('Source'),
    ...(found.samples === 0
      ? []
      : [['Sample data', `${found.samples} of the prices are invented for demonstration`]]),
    ...labelled('Citation', found.citations),
    ...labelled('Cells', NOTES),
    ['Warnings', number(metadata.warnings.length)],
  ];
}

const cellOf = (cell: Row[number], place: number): string | null => {
  if (cell === null || typeof cell === 'object') return cell?.xml ?? null;
  return textCell(cell, place === 0 ? STYLE.heading : STYLE.wrapped);
};

const rowText = (cells: Row, row: number): string => rowXml(row, cells.map(cellOf));
