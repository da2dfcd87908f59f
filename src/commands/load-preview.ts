import { shown } from '../errors.ts';
import type { Listed, LoadPreview, Values } from '../ingest/preview.ts';

/** Entries of each list that a person is shown; --json has more. */
const SHOWN_MAX = 10;

const count = (value: number): string => value.toLocaleString('en');

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
  return [heading, ...lines, ...(more > 0 ? [`  and ${count(more)} more`] : [])];
}

const text = (value: string | null): string => (value === null ? 'none' : `"${shown(value)}"`);

/** Whether a load will change anything. */
export const hasNews = (preview: LoadPreview): boolean => {
  const { newPrices, changedPrices, newNames, newCurrencies, newValues, corrections } = preview;
  const lists = [newPrices, changedPrices, newNames, newValues, corrections];
  return newCurrencies.length > 0 || lists.some(({ total }) => total > 0);
};

/** What a load will do, for a person. */
export function previewLines(preview: LoadPreview): string[] {
  const { newPrices, changedPrices, newNames, newCurrencies, newValues, corrections, again } =
    preview;
  const currencies = { total: newCurrencies.length, shown: newCurrencies };
  const lines = [
    ...section(
      `New prices: ${count(newPrices.total)}`,
      newPrices,
      ({ code, name }) => `${code} ${text(name)}`,
    ),
    ...section(
      `Changed attributes of prices: ${count(changedPrices.total)}`,
      changedPrices,
      ({ code, field, before, after }) => `${code} ${field}: ${text(before)} → ${text(after)}`,
    ),
    ...section(
      `New names: ${count(newNames.total)}`,
      newNames,
      ({ kind, name }) => `${kind} ${text(name)}`,
    ),
    ...section(`New currencies: ${count(newCurrencies.length)}`, currencies, (iso) => iso),
    ...section(
      `New values: ${count(newValues.values)}, of ${count(newValues.total)}`,
      newValues,
      ({ code, values, from, to }) =>
        `${code} ${count(values)}, ${from === to ? from : `${from} to ${to}`}`,
    ),
    ...section(
      `Published again after they were withdrawn: ${count(again.total)}`,
      again,
      ({ code, date, after }) => `${code} ${date}: ${valuesText(after)}`,
    ),
    ...section(
      `Corrections: ${count(corrections.total)}`,
      corrections,
      ({ code, date, before, after }) =>
        `${code} ${date}: ${valuesText(before)} → ${valuesText(after)}`,
    ),
  ];
  return lines.length > 0 ? lines : ['Nothing new, and nothing to correct.'];
}
