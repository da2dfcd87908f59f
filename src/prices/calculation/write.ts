import { unitText } from '../../calculation/unit.ts';
import { textCell } from '../../std/csv.ts';
import type { CalculationAnswer, CalculationResult } from './answer.ts';
import { type InputResult, NumberText, shownExact, shownNumber } from './input-result.ts';

/** The formats of calculations, the default first. */
export const CALCULATION_FORMATS = ['json', 'csv', 'ndjson'] as const;

export type CalculationFormat = (typeof CALCULATION_FORMATS)[number];

/** The body of an answer in a format. */
export const calculationText = (answer: CalculationAnswer, format: CalculationFormat): string =>
  (written[format] ?? csvOf)(answer);

const numberCell = (value: NumberText | null): string => value?.text ?? '';

/** One row for each anchor. */
function csvOf({ names, results }: CalculationAnswer): string {
  const header = [
    ...['anchor', 'value', 'unit', 'status'],
    ...names.flatMap((name) => [name, `${name}.observations`]),
  ];
  const rows = results.map(({ anchor, value, unit, status, inputs }) => [
    ...[anchor ?? '', numberCell(value), textCell(unit), status],
    ...inputs.flatMap((each) => [
      numberCell(shownNumber(each.value)),
      String(each.observations ?? ''),
    ]),
  ]);
  return [header, ...rows].map((row) => `${row.join(',')}\r\n`).join('');
}

/** Replaces numbers by texts: `this` has the member before its conversion to JSON. */
function asText(this: Readonly<Record<string, unknown>>, name: string, value: unknown): unknown {
  const own = this[name];
  return own instanceof NumberText ? own.text : value;
}

/** A value as JSON. A number keeps its digits, and is a JSON string if asked for. */
const jsonOf = (value: unknown, isText: boolean): string =>
  JSON.stringify(value, isText ? asText : undefined);

function inputMembers(input: InputResult): object {
  const { value, unit, observations } = input;
  const { unitFactor, source, sessions, notUsed, note, ...described } = input.receipt();
  const number = { value: shownNumber(value), exact: shownExact(value), unit: unitText(unit) };
  if (observations === null) return { ...number, note };
  const conversion = { unitFactor: unitFactor ?? null, source };
  return { ...described, ...number, observations, ...conversion, sessions, notUsed };
}

/** A result with its members in the order of the contract. */
function resultMembers(result: CalculationResult, hasReceipt: boolean): object {
  const { inputs, steps, rounding, ...shown } = result;
  if (!hasReceipt) return { ...shown, rounding };
  const receipts = inputs.map((each) => [each.name, inputMembers(each)]);
  return { ...shown, inputs: Object.fromEntries(receipts), steps, rounding };
}

/** The texts of all results, one for each. */
const resultTexts = ({ plan, results }: CalculationAnswer): string[] =>
  results.map((each) => jsonOf(resultMembers(each, plan.hasReceipt), plan.decimalsAsText));

const written: Readonly<Record<string, (answer: CalculationAnswer) => string>> = {
  json: (answer) =>
    `{"$metadata":${JSON.stringify(answer.metadata)},"data":[${resultTexts(answer).join(',')}]}`,
  ndjson: (answer) =>
    resultTexts(answer)
      .map((each) => `${each}\n`)
      .join(''),
  csv: csvOf,
};
