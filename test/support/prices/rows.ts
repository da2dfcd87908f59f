import { csvRecords } from './csv.ts';

/** A record of JSON, its numbers as the text that was sent. */
// biome-ignore lint/suspicious/noExplicitAny: tests read untyped bodies.
export type ExactRecord = any;

/** The references that records of every market have. */
const GENERAL = ['product', 'priceCategory', 'frequency', 'unitOfMeasure', 'currency', 'priceType'];

const SPANS = 'previous week fortnight month quarter halfYear year yearToDate'.split(' ');

/** Escapes the parts of a text between separators against formula injection in spreadsheets. */
const safe = (text: string | null): string | null => {
  const parts = text?.split(/([;\t\r\n])/);
  const escaped = parts?.map((part, at) => {
    if (at % 2 === 1) return part;
    const first = part.replace(/^["']*/, '').charAt(0) || (parts[at + 1] ?? '');
    return first !== '' && '=+-@\t\r＝＋－＠'.includes(first) ? `'${part}` : part;
  });
  return escaped?.join('') ?? null;
};

const isReference = (value: unknown): value is { name: string } =>
  typeof value === 'object' && value !== null && 'id' in value && 'name' in value;

function dimensionsOf(record: ExactRecord): Record<string, string | null> {
  const after = Object.keys(record).indexOf('frequency');
  const names = Object.keys(record).filter(
    (_name, index, all) => index > after && index < all.indexOf('unitOfMeasure'),
  );
  return Object.fromEntries(
    names.map((name) => [name, isReference(record[name]) ? safe(record[name].name) : null]),
  );
}

const aboutOf = (record: ExactRecord) => ({
  code: safe(record.code),
  name: safe(record.name),
  shortName: safe(record.shortName),
  ...Object.fromEntries(GENERAL.slice(0, 3).map((name) => [name, safe(record[name].name)])),
  priceType: safe(record.priceType.name),
  currency: record.currency?.iso ?? null,
  unitOfMeasure: safe(record.unitOfMeasure.name),
  ...dimensionsOf(record),
  productAlias: safe(record.product.alias),
  chemicalCode: safe(record.product.chemicalCode),
  isSustainable: String(record.product.isSustainable),
  specification: safe(
    record.specification
      .map((each: { name: string; value: string }) => `${each.name}: ${each.value}`)
      .join('; '),
  ),
  assessmentLaunchedAt: record.assessmentLaunchedAt,
  lastAssessedAt: record.lastAssessedAt,
  latestPublishedAt: record.latestPublishedAt,
  nextExpectedAt: record.nextExpectedAt,
  observes: record.observes,
  vatCountry: record.vatCountry,
  referenceCode: record.reference && safe(record.reference.code),
  referenceSide: record.reference?.side,
  referenceStatistic: record.reference?.statistic,
  referenceElement: record.reference?.element,
  referenceValidFrom: record.reference?.validFrom,
});

const conversionOf = ({ conversion }: ExactRecord) => ({
  conversionStatus: conversion?.status,
  fromCurrency: conversion?.from.currency,
  fromUnitOfMeasure: conversion && safe(conversion.from.unitOfMeasure),
  toCurrency: conversion?.to.currency,
  toUnitOfMeasure: conversion && safe(conversion.to.unitOfMeasure),
  unitMultiply: conversion?.unitFactor?.multiply,
  unitDivide: conversion?.unitFactor?.divide,
  rateSource: conversion?.source,
  rounding: conversion?.rounding,
  conversionVat: conversion?.vat,
});

const summaryOf = ({ summary }: ExactRecord) => ({
  latestDate: summary?.latest?.date,
  latestMid: summary?.latest?.mid,
  previousDate: summary?.previous?.date,
  previousMid: summary?.previous?.mid,
  ...Object.fromEntries(
    SPANS.flatMap((span) => {
      const change = summary?.changes[span];
      return [
        [`${span}Absolute`, change?.absolute],
        [`${span}Percent`, change?.percent],
        [`${span}BaseDate`, change?.baseDate],
      ];
    }),
  ),
});

const pointOf = (point: ExactRecord) => ({
  date: point?.date,
  low: point?.low,
  mid: point?.mid,
  high: point?.high,
  publishedAt: point?.publishedAt,
  corrections: point?.corrections,
  periodStart: point?.periodStart,
  periodEnd: point?.periodEnd,
  observations: point?.observations,
  fxDate: point?.fx?.date,
  fxBase: point?.fx?.base,
  fxFrom: point?.fx?.from,
  fxTo: point?.fx?.to,
  observationsLeftOut: point?.observationsLeftOut,
  movingAverage: point?.movingAverage,
  fxMeanRate: point?.fxMean?.rate,
  fxMeanFirstDate: point?.fxMean?.firstDate,
  fxMeanLastDate: point?.fxMean?.lastDate,
  fxMeanDays: point?.fxMean?.days,
  vatRate: point?.vatRate,
});

/** A reason stands on the rows that it explains: of a partial record, those without a rate. */
const reasonOf = ({ conversion }: ExactRecord, point: ExactRecord) => ({
  conversionReason:
    conversion?.status === 'partial' && point ? point.conversionReason : conversion?.reason,
});

/** The rows that a CSV must have for a record of JSON: cells by column, what is missing empty. */
export function rowsOf(record: ExactRecord): Record<string, string>[] {
  const points = record.series.length > 0 ? record.series : [undefined];
  const common = { ...aboutOf(record), ...conversionOf(record), ...summaryOf(record) };
  return points.map((point: ExactRecord) =>
    Object.fromEntries(
      Object.entries({ ...common, ...pointOf(point), ...reasonOf(record, point) }).map(
        ([name, value]) => [name, value ?? ''],
      ),
    ),
  );
}

/** The first difference between a CSV and the records of JSON; null where they say the same. */
export function differenceOf(csv: string, records: readonly ExactRecord[]): string | null {
  const found = csvRecords(csv);
  const wanted = records.flatMap(rowsOf);
  if (found.length !== wanted.length) return `${found.length} rows and not ${wanted.length}`;
  for (const [index, row] of found.entries()) {
    const other = wanted[index] ?? {};
    const names = [...new Set([...Object.keys(row), ...Object.keys(other)])];
    const odd = names.find((name) => row[name] !== other[name]);
    if (odd) return `row ${index}, ${odd}: ${row[odd]} and not ${other[odd]}`;
  }
  return null;
}
