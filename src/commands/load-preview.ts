import { shown } from '../errors.ts';
import type { Listed, LoadPreview, Values } from '../ingest/preview.ts';
import { countText } from './output.ts';

/** Entries of each list that a person is shown; --json has more. */
const SHOWN_MAX = 10;

/** Low, mid and high; `–` for what a value does not have. */
export const valuesText = ({ low, mid, high }: Values): string =>
  low === null && high === null ? mid : `${low ?? '–'} / ${mid} / ${high ?? '–'}`;

/** A heading, the first entries below it, and how many more there are; nothing for no entry. */
export function section<T>(
  heading: string,
  { total, shown: all }: Listed<T>,
  line: (entry: T) => string,
) {
  if (total === 0) return [];
  const lines = all.slice(0, SHOWN_MAX).map((entry) => `  ${line(entry)}`);
  const more = total - lines.length;
  return [heading, ...lines, ...(more > 0 ? [`  and ${countText(more)} more`] : [])];
}

const text = (value: string | null): string => (value === null ? 'none' : `"${shown(value)}"`);

/** What a load will do, for a person; no line for one that would change nothing. */
export function previewLines(preview: LoadPreview): string[] {
  const { newPrices, changedPrices, newNames, newCurrencies, newValues, corrections, again } =
    preview;
  const currencies = { total: newCurrencies.length, shown: newCurrencies };
  const codes = `${countText(newValues.total)} ${newValues.total === 1 ? 'code' : 'codes'}`;
  return [
    ...section(
      `New prices: ${countText(newPrices.total)}`,
      newPrices,
      ({ code, name }) => `${code} ${text(name)}`,
    ),
    ...section(
      `Changed attributes of prices: ${countText(changedPrices.total)}`,
      changedPrices,
      ({ code, field, before, after }) => `${code} ${field}: ${text(before)} → ${text(after)}`,
    ),
    ...section(
      `New names: ${countText(newNames.total)}`,
      newNames,
      ({ kind, name }) => `${kind} ${text(name)}`,
    ),
    ...section(`New currencies: ${countText(newCurrencies.length)}`, currencies, (iso) => iso),
    ...section(
      `New values: ${countText(newValues.values)}, of ${codes}`,
      newValues,
      ({ code, values, from, to }) =>
        `${code} ${countText(values)}, ${from === to ? from : `${from} to ${to}`}`,
    ),
    ...section(
      `Published again after they were withdrawn: ${countText(again.total)}`,
      again,
      ({ code, date, after }) => `${code} ${date}: ${valuesText(after)}`,
    ),
    ...section(
      `Corrections: ${countText(corrections.total)}`,
      corrections,
      ({ code, date, before, after }) =>
        `${code} ${date}: ${valuesText(before)} → ${valuesText(after)}`,
    ),
  ];
}
