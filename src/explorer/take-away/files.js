// The files of a chart: their columns, their requests, and one CSV for several markets.
import { isSample, vatOf } from '../texts.js';

/** Columns of the programs, and the first columns of every long file. They explain each value. */
const IDENTITY = ['code', 'date', 'low', 'mid', 'high', 'currency', 'unitOfMeasure', 'name'];

/** Attributes of every market that may differ between prices. */
const ATTRIBUTES = ['product', 'priceCategory', 'priceType', 'frequency'];

/** True for an attribute of a record: an object with a name. */
const isAttribute = (value) => value !== null && typeof value === 'object' && 'name' in value;

/** True if a member differs between records. A member that a market lacks is no column of it. */
function differs(records, member) {
  if (!records.every((each) => each[member] !== undefined)) return false;
  return new Set(records.map((each) => each[member]?.name ?? each[member])).size > 1;
}

/** The attributes of some records, such as `country`. */
const attributesOf = (records) => [
  ...new Set([
    ...ATTRIBUTES,
    ...records.flatMap((record) =>
      Object.keys(record).filter((member) => isAttribute(record[member])),
    ),
  ]),
];

/** Objects of records that are no columns, or columns of every file. */
const NO_COLUMN = ['currency', 'unitOfMeasure', 'conversion', 'summary', 'reference'];

/**
 * The columns of a long file: those that name a price and its unit, and of the others those that
 * vary between the rows. The specification and the source of exchange rates are there even if they
 * are the same in every row: they mark sample data and VAT.
 * @param records the records of the chart, with their series
 */
export function columnsOf(records) {
  const points = records.flatMap(({ series }) => series);
  const some = (test) => points.some(test);
  const isGiven = (name) => some((point) => point[name] !== null && point[name] !== undefined);
  const attributes = attributesOf(records).filter(
    (member) => !NO_COLUMN.includes(member) && differs(records, member),
  );
  const isPartial = records.some(
    ({ conversion }) => conversion && conversion.status !== 'converted',
  );
  return [
    ...IDENTITY.filter((name) => !['low', 'high'].includes(name) || isGiven(name)),
    'publishedAt',
    ...(some(({ corrections }) => corrections > 0) ? ['corrections'] : []),
    ...attributes,
    ...['periodStart', 'periodEnd', 'observations', 'observationsLeftOut'].filter(isGiven),
    ...(isGiven('fx') ? ['fxDate', 'fxBase', 'fxFrom', 'fxTo'] : []),
    ...(isGiven('fxMean') ? ['fxMeanRate', 'fxMeanFirstDate', 'fxMeanLastDate', 'fxMeanDays'] : []),
    ...(records.some(({ conversion }) => conversion?.source) ? ['rateSource'] : []),
    ...(isPartial ? ['conversionStatus', 'conversionReason'] : []),
    ...(records.some(({ specification }) => specification.length > 0) ? ['specification'] : []),
  ];
}

/** The parameters of each kind of file. */
const KINDS = {
  csv: 'format=csv',
  semicolon: 'format=csv&csvDialect=semicolon',
  xlsx: 'format=xlsx',
};

/**
 * The address of a file.
 * @param form the columns of the file: `whole`, `short`, `wide`, `compared` or `program`
 * @param kind `csv`, `semicolon` (a CSV with semicolons and decimal commas) or `xlsx`
 */
export function fileAddress(address, form, records, kind = 'csv') {
  const options = {
    whole: `columns=${columnsOf(records).join(',')}`,
    short: 'columns=short',
    wide: 'layout=wide',
    // The service has no comparisons: their request is that of the prices.
    compared: 'layout=wide',
    program: `columns=${IDENTITY.join(',')}`,
  };
  return `${address}${address.includes('?') ? '&' : '?'}${KINDS[kind]}&${options[form]}`;
}

/** The rows of several files with the same columns as one file. */
export const joined = ([first, ...others]) =>
  [first, ...others.map((text) => text.slice(text.indexOf('\r\n') + 2))].join('');

/** The beginning of a text that a spreadsheet runs as a formula. */
const FORMULA = /^["']*[=+\-@\t\r\uff0b\uff0d\uff1d\uff20]/;

/** A text as a cell, as the service writes it. */
function cell(text) {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",;\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The currency and unit of a column, with the names of the service: `USD/Tonne`. */
export const unitOf = ({ currency, unitOfMeasure }) =>
  currency ? `${currency.iso}/${unitOfMeasure.name}` : (unitOfMeasure?.name ?? '%');

/** The columns of prices in a wide file: the mids, headed by code, unit, VAT and `sample data`. */
export const priceColumns = (records) =>
  records.map((record) => {
    const vat = vatOf(record);
    const marks = `${vat ? ` (VAT ${vat})` : ''}${isSample(record) ? ' (sample data)' : ''}`;
    return {
      heading: `${record.code} [${unitOf(record)}]${marks}`,
      values: new Map(record.series.map(({ date, mid }) => [date, mid])),
    };
  });

/**
 * A CSV with a row for each date.
 * @param columns `heading`, and `values`, exact texts by date
 * @param kind `csv` or `semicolon`
 */
export function wideFile(columns, kind) {
  const [separator, point] = kind === 'semicolon' ? [';', ','] : [',', '.'];
  const dates = [...new Set(columns.flatMap(({ values }) => [...values.keys()]))].sort();
  const rows = dates.map((date) => [
    date,
    ...columns.map(({ values }) => values.get(date)?.replace('.', point) ?? ''),
  ]);
  return [['date', ...columns.map(({ heading }) => cell(heading))], ...rows]
    .map((row) => `${row.join(separator)}\r\n`)
    .join('');
}

/**
 * The name of a file: the codes of its prices, as many as a name holds.
 * @param ending with its point; a text before the point follows the codes
 */
export function fileName(entries, ending) {
  const [first, ...others] = entries.map(({ record }) => record.code.replace(/[^\w.-]+/g, '_'));
  const rest = others.length > 3 ? [`and_${others.length}_more`] : others;
  return `${[first, ...rest].join('_').slice(0, 120)}${ending}`;
}
