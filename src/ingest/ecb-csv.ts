import { dayOfWords, isDay } from './dates.ts';
import type { RateReader } from './format.ts';
import { lineBlocks } from './lines.ts';
import { type Problems, Refusal } from './problems.ts';
import type { RateRecord } from './records.ts';

/** The ECB's word for "no rate on this day". It is never a zero. */
const NO_RATE = 'N/A';

/** The fields of a line; the ECB ends each line with a separator, after which nothing comes. */
function fieldsOf(line: string): string[] {
  const fields = line.split(',').map((field) => field.trim());
  if (fields.at(-1) === '') fields.pop();
  return fields;
}

/** The currencies of the header, which name themselves: they come and go over the years. */
function currenciesOf(line: string): string[] {
  const [date, ...currencies] = fieldsOf(line);
  const place = { line: 1, value: line };
  if (date !== 'Date' || currencies.length === 0) {
    const message = 'The first line of the ECB’s CSV is "Date" and the currencies';
    throw new Refusal('invalid_layout', message, place);
  }
  for (const [index, currency] of currencies.entries()) {
    if (!/^[A-Z]{3}$/.test(currency)) {
      const message = 'The header names something that is no currency code';
      throw new Refusal('unknown_column', message, { line: 1, value: currency });
    }
    if (currencies.indexOf(currency) < index) {
      const message = 'The header names a currency twice';
      throw new Refusal('duplicate', message, { line: 1, value: currency });
    }
  }
  return currencies;
}

/** The history writes 2026-04-13, the single day 13 April 2026. */
const dayOf = (text: string): string | null => (isDay(text) ? text : dayOfWords(text));

function ratesOf(
  text: string,
  line: number,
  currencies: readonly string[],
  problems: Problems,
): RateRecord[] {
  const [day = '', ...rates] = fieldsOf(text);
  if (rates.length !== currencies.length) {
    const message = `The line has ${rates.length} rates, the header ${currencies.length}`;
    problems.reject('wrong_column_count', message, { line, text });
    return [];
  }
  const date = dayOf(day);
  if (date === null) {
    problems.rejected += rates.filter((rate) => rate !== NO_RATE).length;
    const message = 'The date is not a day such as 2026-04-13 or 13 April 2026';
    problems.add('invalid_date', message, { line, column: 'Date', value: day, text });
    return [];
  }
  return rates.flatMap((rate, index) =>
    rate === NO_RATE
      ? []
      : ({ kind: 'rate', line, currency: currencies[index] ?? '', date, rate } as const),
  );
}

/** Reads the ECB's CSV, history or single day. */
export const readRatesCsv: RateReader = async function* readRatesCsv(bytes, { problems }) {
  let currencies: string[] | null = null;
  for await (const { first, lines } of lineBlocks(bytes, problems)) {
    const records: RateRecord[] = [];
    for (const [index, text] of lines.entries()) {
      if (text === null || text.trim() === '') continue;
      if (currencies === null) currencies = currenciesOf(text);
      else records.push(...ratesOf(text, first + index, currencies, problems));
    }
    yield records;
  }
};
