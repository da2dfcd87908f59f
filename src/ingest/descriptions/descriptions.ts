import { OBSERVES } from '../../catalog/analytics.ts';
import { columnName, DIMENSIONS, snakeCase } from '../../catalog/dimensions.ts';
import { type Market, marketOf } from '../../catalog/markets.ts';
import { matchKey } from '../../catalog/match-key.ts';
import { didYouMean } from '../../catalog/nearest.ts';
import type { PayableReference } from '../../catalog/payable-reference.ts';
import { DATE_MIN, isDay } from '../parsing/dates.ts';
import { type LoadErrorCode, Refusal } from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import {
  DIMENSION_FIELDS,
  type PriceRecord,
  type ProductRecord,
  type ValueRecord,
} from '../records/source-record.ts';
import { INVALID_LABEL, isLabel, specificationOf } from '../records/texts.ts';
import { KIND_OF, type ReferenceData, type ReferenceRow } from './known-names.ts';
import {
  mergedReferences,
  ReferencesError,
  referencesText,
  statedReferences,
} from './references.ts';

/**
 * Most prices, products and dimension values that one file may describe; they are held in memory.
 */
const DESCRIPTIONS_MAX = 20_000;
/** Total characters of all descriptions, as JSON. */
const CHARACTERS_MAX = 67_108_864;

/** The descriptions of prices, products and dimension values in a file. */
export class Descriptions {
  /** By series number. */
  readonly prices = new Map<number, PriceRecord>();
  /** Products and dimension values. */
  readonly others: (ProductRecord | ValueRecord)[] = [];
  private characters = 0;
  private readonly problems: Problems;

  constructor(problems: Problems) {
    this.problems = problems;
  }

  get count(): number {
    return this.prices.size + this.others.length;
  }

  /**
   * Keeps the first description of a price.
   * @returns false, after reporting the problem, for a later description that differs
   */
  addPrice(number: number, record: PriceRecord): boolean {
    const first = this.prices.get(number);
    if (!first) {
      this.prices.set(number, this.keep(record));
      return true;
    }
    const names = Object.keys({ ...first.attributes, ...record.attributes });
    for (const column of names) {
      const value = record.attributes[column] ?? null;
      if (value === (first.attributes[column] ?? null)) continue;
      const message = `${record.code} was described differently in line ${first.line}`;
      const { file, line } = record;
      this.problems.add('conflicting', message, { file, line, column, value });
      return false;
    }
    return true;
  }

  add(record: ProductRecord | ValueRecord): void {
    this.others.push(this.keep(record));
  }

  /** Copies a record, so that its block of the file is not kept in memory. */
  private keep<T extends PriceRecord | ProductRecord | ValueRecord>(record: T): T {
    const copy = JSON.stringify(record);
    this.characters += copy.length;
    const isFull = this.count >= DESCRIPTIONS_MAX;
    if (!isFull && this.characters <= CHARACTERS_MAX) return JSON.parse(copy);
    const limit = isFull ? `${DESCRIPTIONS_MAX} prices` : `${CHARACTERS_MAX} characters of prices`;
    const message = `The file describes more than ${limit}: load it in parts`;
    throw new Refusal('too_many_prices', message, { file: record.file, line: record.line });
  }
}

/** Columns of `price` that a description states. Rows that are not yet created have id 0. */
export type DescribedColumns = Readonly<Record<string, string | number | null>>;

/** Reports the problems of one description. `failed` is true after the first. */
class DescriptionChecker {
  failed = false;
  readonly record: PriceRecord;
  private readonly problems: Problems;

  constructor(record: PriceRecord, problems: Problems) {
    this.record = record;
    this.problems = problems;
  }

  fail(code: LoadErrorCode, column: string, message: string): null {
    const value = this.record.attributes[column] ?? null;
    const { file, line } = this.record;
    this.problems.add(code, message, { file, line, column, value });
    this.failed = true;
    return null;
  }

  /** Finds the id of a row by name or id. */
  find(
    column: string,
    text: string,
    rows: ReadonlyMap<string, ReferenceRow> | undefined,
    code: LoadErrorCode,
  ): number | null {
    const row = rows?.get(matchKey(text));
    if (row) return row.id;
    const names = new Set([...(rows?.values() ?? [])].map((each) => each.name));
    return this.fail(code, column, `There is no such ${column}${didYouMean(text, names)}`);
  }
}

type FieldReader = (text: string | null, at: FieldContext) => DescribedColumns | null;
interface FieldContext {
  /** The existing price; null for a new one. */
  readonly known: KnownPrice | null;
  readonly description: DescriptionChecker;
  readonly column: string;
  /** Both are undefined if the market is unknown. */
  readonly market: Market | undefined;
  readonly marketId: number | undefined;
  readonly reference: ReferenceData;
}

/** Reads a text into the column of the same name in snake case. */
const plainText =
  (field: string, isNeeded: boolean): FieldReader =>
  (text, { description }) => {
    if (text === null && isNeeded) {
      return description.fail('missing_value', field, `A price needs a ${field}`);
    }
    if (text === null || isLabel(text)) return { [snakeCase(field)]: text };
    return description.fail('invalid_text', field, INVALID_LABEL);
  };

const priceType: FieldReader = (text, { description }) => {
  const type = matchKey(text ?? '');
  if (type === 'price' || type === 'payable') return { price_type: type };
  return description.fail('unknown_value', 'priceType', 'The type is Price or Payable');
};

const currency: FieldReader = (text, { description, reference }) => {
  if (text === null) return { currency_id: null };
  const known = reference.currencies.get(text.toUpperCase());
  if (known) return { currency_id: known.id };
  const names = [...reference.currencies.keys()].join(', ');
  return description.fail('unknown_currency', 'currency', `The currencies are ${names}`);
};

const unitOfMeasure: FieldReader = (text, { description, reference }) => {
  if (text === null) {
    return description.fail('missing_value', 'unitOfMeasure', 'A price needs a unit of measure');
  }
  const unit = reference.units.get(matchKey(text));
  if (unit) return { unit_id: unit.id, unit_dimension: unit.dimension };
  const names = new Set([...reference.units.values()].map((each) => each.name));
  const message = `There is no such unit${didYouMean(text, names)}`;
  return description.fail('unknown_unit', 'unitOfMeasure', message);
};

/** The constraint of the column has the same bound. */
const LAUNCH_MAX = '2199-12-31';

const launched: FieldReader = (text, { description }) => {
  const isValid = text === null || (isDay(text) && text >= DATE_MIN && text <= LAUNCH_MAX);
  if (isValid) return { assessment_launched_at: text };
  const days = `a real day from ${DATE_MIN} to ${LAUNCH_MAX}`;
  const message = `The date is not ${days}, written YYYY-MM-DD`;
  return description.fail('invalid_date', 'assessmentLaunchedAt', message);
};

const specification: FieldReader = (text, { description }) => {
  const entries = specificationOf(text);
  if (entries !== null) return { specification: entries };
  const message = 'Expected a JSON array of {"name", "value"} with texts, in the order to show';
  return description.fail('invalid_text', 'specification', message);
};

/** A price of which a file says nothing else has values of a day. */
const observes: FieldReader = (text, { description }) => {
  const stated = text ?? 'day';
  if ((OBSERVES as readonly string[]).includes(stated)) return { observes: stated };
  const message = `The texts are ${OBSERVES.join(', ')}${didYouMean(stated, OBSERVES)}`;
  return description.fail('unknown_value', 'observes', message);
};

/** Countries are not listed: a rate of VAT may be loaded after the price. */
const vatCountry: FieldReader = (text, { description }) => {
  const code = text?.toUpperCase() ?? null;
  if (code === null || /^[A-Z]{2}$/.test(code)) return { vat_country: code };
  const message = 'Expected the ISO 3166 code of a country, of two letters, such as CN';
  return description.fail('unknown_value', 'vatCountry', message);
};

const reference: FieldReader = (text, { description, known, reference: { referenced } }) => {
  if (text === null) return { payable_reference: null };
  const fail = (code: LoadErrorCode, message: string) =>
    description.fail(code, 'reference', message);
  try {
    const stated = statedReferences(text);
    const references = stated.references.map((each) => {
      const price = referenced.get(matchKey(each.code));
      if (price && !price.isPayable) return { ...each, code: price.code };
      if (price) fail('invalid_price', `${price.code} is a payable; a reference is a price`);
      else fail('unknown_code', `There is no price ${each.code}`);
      return each;
    });
    const merged = mergedReferences(known?.payable_reference ?? null, { ...stated, references });
    return { payable_reference: referencesText(merged) };
  } catch (error) {
    if (!(error instanceof ReferencesError)) throw error;
    return fail('invalid_text', error.message);
  }
};

const product: FieldReader = (text, { description, reference, marketId }) => {
  if (text === null) return description.fail('missing_value', 'product', 'A price needs a product');
  if (marketId === undefined) return null;
  const id = description.find('product', text, reference.products.get(marketId), 'unknown_product');
  return id === null ? null : { product_id: id };
};

/** Category and frequency, which every price must have. */
const requiredDimension: FieldReader = (text, context) => {
  const { description, column } = context;
  if (text !== null) return dimension(text, context);
  return description.fail('missing_value', column, `A price needs a ${column}`);
};

const dimension: FieldReader = (text, { description, column, market, reference }) => {
  if (text === null) return { [columnName(column)]: null };
  const own = market?.filters.map((filter) => DIMENSIONS[filter].field as string);
  if (market && own && DIMENSION_FIELDS.includes(column) && !own.includes(column)) {
    const message = `${market.name} has no ${column}; its dimensions are ${own.join(', ')}`;
    return description.fail('unsupported_field', column, message);
  }
  const rows = reference.values.get(KIND_OF.get(column) ?? '');
  const id = description.find(column, text, rows, 'unknown_value');
  return id === null ? null : { [columnName(column)]: id };
};

const READERS: Readonly<Record<string, FieldReader>> = {
  name: plainText('name', true),
  shortName: plainText('shortName', false),
  product,
  priceCategory: requiredDimension,
  priceType,
  frequency: requiredDimension,
  currency,
  unitOfMeasure,
  assessmentLaunchedAt: launched,
  specification,
  observes,
  vatCountry,
  reference,
  ...Object.fromEntries(DIMENSION_FIELDS.map((field) => [field, dimension])),
};

/** Attributes that a new price must have. */
const REQUIRED_FIELDS = ['market', 'name', 'product', 'priceCategory', 'priceType', 'frequency'];

/**
 * A payable is a percentage and has no currency. Columns with a problem of their own are skipped.
 */
function checkCurrencyAndUnit(columns: DescribedColumns, description: DescriptionChecker): void {
  const { price_type: type, currency_id: currency, unit_dimension: unit } = columns;
  if (type === undefined) return;
  const isPayable = type === 'payable';
  if (currency !== undefined && isPayable !== (currency === null)) {
    const message = isPayable ? 'A payable has no currency' : 'A price needs a currency';
    description.fail('invalid_price', 'currency', message);
  }
  if (unit !== undefined && isPayable !== (unit === 'ratio')) {
    const message = isPayable ? 'A payable is in Percent' : 'Percent is the unit of payables only';
    description.fail('invalid_price', 'unitOfMeasure', message);
  }
}

/** A payable is a percentage, which includes no tax. @param type null if it is not known */
function checkVat(
  { vat_country: country }: DescribedColumns,
  description: DescriptionChecker,
  type: unknown,
): void {
  if (type !== 'payable' || typeof country !== 'string') return;
  description.fail('invalid_price', 'vatCountry', 'A payable includes no VAT');
}

/** Only a payable is a percentage of another price. */
function checkReference(
  columns: DescribedColumns,
  known: KnownPrice | null,
  description: DescriptionChecker,
): void {
  const type = known?.price_type ?? columns['price_type'] ?? 'payable';
  if (type === 'payable' || (columns['payable_reference'] ?? null) === null) return;
  description.fail('invalid_price', 'reference', 'Only a payable has a reference');
}

/** An existing price; null stands for a new one. */
interface KnownPrice {
  readonly market: string;
  readonly price_type?: 'price' | 'payable';
  readonly payable_reference?: readonly PayableReference[] | null;
}

/**
 * Converts a description to columns: all columns for a new price, the stated ones for an existing
 * price.
 * @returns null after reporting problems
 */
export function describedColumns(
  record: PriceRecord,
  known: KnownPrice | null,
  reference: ReferenceData,
  problems: Problems,
): DescribedColumns | null {
  const description = new DescriptionChecker(record, problems);
  const slug = record.attributes['market'] ?? known?.market ?? '';
  const marketId = reference.markets.get(slug);
  const market = marketId === undefined ? undefined : marketOf(slug);
  if (slug === '') {
    description.fail('missing_value', 'market', 'A new price needs a market');
  } else if (market === undefined) {
    const message = `There is no such market${didYouMean(slug, reference.markets.keys())}`;
    description.fail('unknown_market', 'market', message);
  }
  const columns: Record<string, string | number | null> = { market_id: marketId ?? null };
  // Without a market the description may belong to an existing price, so missing attributes are not
  // reported.
  const isNewPrice = known === null && slug !== '';
  const stated = isNewPrice ? { ...NO_ATTRIBUTES, ...record.attributes } : record.attributes;
  for (const [column, text] of Object.entries(stated)) {
    const context = { description, column, known, market, marketId, reference };
    Object.assign(columns, READERS[column]?.(text, context));
  }
  if (!known) checkCurrencyAndUnit(columns, description);
  checkVat(columns, description, known?.price_type ?? columns['price_type']);
  checkReference(columns, known, description);
  return description.failed ? null : columns;
}

/** Default attributes of a new price. */
const NO_ATTRIBUTES: Readonly<Record<string, null>> = Object.fromEntries(
  [...REQUIRED_FIELDS, ...Object.keys(READERS)].map((name) => [name, null]),
);
