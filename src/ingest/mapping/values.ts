import { didYouMean } from '../../catalog/nearest.ts';
import { multiplied } from '../parsing/decimals.ts';
import { Refusal } from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import {
  type PointField,
  type PointRecord,
  type RateRecord,
  valuesText,
} from '../records/source-record.ts';
import {
  DayReader,
  Fault,
  type Field,
  isEmpty,
  isMissing,
  type NumberRules,
  numberOf,
  numberReader,
  sampleOf,
  shownText,
  type TableRow,
  textOf,
} from './fields.ts';
import {
  isPercent,
  PublicationReader,
  QuotationReader,
  type ScaledQuotation,
} from './quotation.ts';
import type { Mapping } from './schema.ts';
import type { PointColumnIndexes, TableColumns } from './value-columns.ts';

/** The number rules of a mapping. */
function numberRules({ numbers = {}, workbook = {} }: Mapping): NumberRules {
  const { decimal = 'point', thousands = 'none', missing = [''] } = numbers;
  const notation = { decimal, thousands };
  return {
    read: numberReader(notation),
    sample: sampleOf(notation),
    missing: new Set(missing.map((text) => text.trim())),
    onlyNumbers: workbook.onlyNumbers === true,
  };
}

/** Marks a code that the mapping skips. */
const SKIPPED = Symbol('skipped');
type Code = string | Fault | typeof SKIPPED;

/** Builds a parser of codes, with the translations of the mapping. */
function codeReader({ code }: Mapping): (field: Field | undefined) => Code {
  const translate = code?.translate && new Map(Object.entries(code.translate));
  return (field) => {
    const text = textOf(field, 'invalid_code');
    if (!translate || text instanceof Fault) return text;
    const translated = translate.get(text);
    if (translated !== undefined) return translated;
    if (code?.others === 'skip') return SKIPPED;
    const hint = didYouMean(text.slice(0, 64), translate.keys());
    return new Fault('unknown_code', `The mapping translates this text to no code${hint}`);
  };
}

/** Converts rows to points, and reports invalid fields with their places. */
export class PointReader {
  private readonly templates: readonly PointColumnIndexes[];
  private readonly quotation: readonly (QuotationReader | null)[];
  private readonly rules: NumberRules;
  private readonly days: DayReader;
  private readonly publication: PublicationReader | null;
  private readonly codeOf: (field: Field | undefined) => Code;
  private readonly hasPlaces: boolean;
  private readonly problems: Problems;
  private code: Code | null = null;
  private date: string | Fault | null = null;
  private reported: Fault | null = null;

  constructor(
    mapping: Mapping,
    columns: TableColumns,
    templates: readonly PointColumnIndexes[],
    { is1904, hasPlaces }: { readonly is1904: boolean; readonly hasPlaces: boolean },
    problems: Problems,
  ) {
    const readers = new Map(
      templates.flatMap(({ published }) =>
        published ? [[published, new QuotationReader(published, columns)] as const] : [],
      ),
    );
    this.templates = templates;
    this.quotation = templates.map(
      ({ published }) => (published && readers.get(published)) ?? null,
    );
    this.rules = numberRules(mapping);
    this.days = new DayReader(mapping.date ?? {}, is1904);
    this.publication = mapping.publishedAt
      ? new PublicationReader(mapping.publishedAt, is1904)
      : null;
    this.codeOf = codeReader(mapping);
    this.hasPlaces = hasPlaces;
    this.problems = problems;
  }

  /** Adds the points of a row, except those without any value. */
  take(row: TableRow, records: PointRecord[]): void {
    this.code = null;
    this.date = null;
    this.reported = null;
    for (let index = 0; index < this.templates.length; index += 1) {
      const template = this.templates[index] as PointColumnIndexes;
      if (this.hasNoValue(row, template)) continue;
      const point = this.point(row, template, this.quotation[index] ?? null);
      if (point) records.push(point);
    }
  }

  private hasNoValue({ fields }: TableRow, { low, mid, high }: PointColumnIndexes): boolean {
    return (
      isMissing(fields[mid], this.rules) &&
      (low < 0 || isMissing(fields[low], this.rules)) &&
      (high < 0 || isMissing(fields[high], this.rules))
    );
  }

  /** Reports why there is no point; a fault that several points of a row share is reported once. */
  private reject(row: TableRow, column: string, field: Field | undefined, fault: Fault): null {
    this.problems.rejected += 1;
    if (this.reported !== fault) {
      const place = { line: row.line, column, value: shownText(field) || null };
      this.problems.add(fault.code, fault.message, place);
    }
    this.reported = fault;
    return null;
  }

  /** True if all values of a point are empty. */
  private hasEmptyFields({ fields }: TableRow, { low, mid, high }: PointColumnIndexes): boolean {
    return [low, mid, high].every((at) => at < 0 || isEmpty(fields[at]));
  }

  private point(
    row: TableRow,
    template: PointColumnIndexes,
    reader: QuotationReader | null,
  ): PointRecord | null {
    const { places } = template;
    const { line, fields } = row;
    // Points of one row share its code and date, which are parsed once.
    const codeField = fields[template.codeAt];
    this.code ??= template.code === null ? this.codeOf(codeField) : null;
    const code = template.code ?? this.code ?? '';
    if (code === SKIPPED) return null;
    const name = (field: PointField): string => places.nameOf(field, line);
    if (code instanceof Fault) return this.reject(row, name('code'), codeField, code);
    const dateField = fields[template.dateAt];
    this.date ??= template.date === null ? this.days.read(dateField) : null;
    const date = template.date ?? this.date ?? '';
    if (date instanceof Fault) {
      // A note below the table has neither date nor value.
      if (this.hasEmptyFields(row, template)) return null;
      return this.reject(row, name('date'), dateField, date);
    }
    const quotation = reader?.read(row) ?? null;
    if (quotation && 'fault' in quotation) {
      return this.reject(row, quotation.column, undefined, quotation.fault);
    }
    const low = this.value(row, template, 'low', quotation);
    if (low === undefined) return null;
    const mid = this.value(row, template, 'mid', quotation);
    if (mid === undefined) return null;
    const high = this.value(row, template, 'high', quotation);
    if (high === undefined) return null;
    const time = fields[template.publishedAt];
    const publishedAt = this.publication?.read(time, date) ?? null;
    if (publishedAt instanceof Fault) {
      return this.reject(row, name('publishedAt'), time, publishedAt);
    }
    if (!this.hasPlaces) {
      return { kind: 'point', line, code, date, low, mid, high, publishedAt, quotation };
    }
    const written = this.writtenOf(row, template, [low, mid, high]);
    return {
      kind: 'point',
      line,
      code,
      date,
      low,
      mid,
      high,
      publishedAt,
      places,
      quotation,
      written,
    };
  }

  /** The values as written in the file; null if they are stored in the same form. */
  private writtenOf(
    { fields }: TableRow,
    { low, mid, high }: PointColumnIndexes,
    values: readonly (string | null)[],
  ): string | null {
    const texts = [low, mid, high].map((at, index) => {
      if ((values[index] ?? null) === null) return null;
      const text = textOf(fields[at], 'invalid_number');
      return text instanceof Fault ? shownText(fields[at]) : text;
    });
    const written = valuesText(...texts);
    return written === valuesText(...values) ? null : written;
  }

  /** A value in the currency and unit of its price; undefined after reporting a problem. */
  private value(
    row: TableRow,
    template: PointColumnIndexes,
    name: 'low' | 'mid' | 'high',
    quotation: ScaledQuotation | null,
  ): string | null | undefined {
    const at = template[name];
    if (at < 0) return null;
    const field = row.fields[at];
    const value = numberOf(field, this.rules, quotation !== null && isPercent(quotation));
    if (value instanceof Fault) {
      this.reject(row, template.places.nameOf(name, row.line), field, value);
      return undefined;
    }
    return value === null || !quotation?.factor ? value : multiplied(value, quotation.factor);
  }
}

/**
 * Parses the currency codes of the header, which change over the years. Columns without a heading
 * at the end of the table are ignored.
 * @throws Refusal for an invalid or duplicate currency
 */
function currenciesOf({ header }: TableColumns, first: number): string[] {
  const line = header?.line ?? null;
  const names = (header?.fields ?? []).slice(first).map((field) => shownText(field).trim());
  const currencies = names.slice(0, names.findLastIndex((name) => name !== '') + 1);
  for (const [index, value] of currencies.entries()) {
    if (!/^[A-Z]{3}$/.test(value)) {
      const message = 'The header names something other than a currency code';
      throw new Refusal('unknown_column', message, { line, value });
    }
    if (currencies.indexOf(value) < index) {
      throw new Refusal('duplicate', 'The header names a currency twice', { line, value });
    }
  }
  if (currencies.length > 0) return currencies;
  throw new Refusal('missing_column', 'The header names no currency', { line });
}

/** Converts rows of a table with a currency in each heading to rates. */
export class RateReader {
  private readonly first: number;
  private readonly dateAt: number;
  private readonly currencies: readonly string[];
  private readonly days: DayReader;
  private readonly missing: ReadonlySet<string>;
  private readonly columns: TableColumns;
  private readonly problems: Problems;

  constructor(mapping: Mapping, columns: TableColumns, is1904: boolean, problems: Problems) {
    this.first = (mapping.rates?.first ?? 1) - 1;
    this.dateAt = columns.indexOf(mapping.date?.column ?? 1);
    this.currencies = currenciesOf(columns, this.first);
    this.days = new DayReader(mapping.date ?? {}, is1904);
    this.missing = new Set(mapping.numbers?.missing ?? ['']);
    this.columns = columns;
    this.problems = problems;
  }

  /** Adds the rates of a row. */
  take({ line, fields }: TableRow, records: RateRecord[]): void {
    const { first, currencies, missing, problems } = this;
    const rates = fields.slice(first).map((field) => shownText(field).trim());
    if (rates.slice(currencies.length).some((rate) => rate !== '')) {
      const message = `The row has ${rates.length} rates, the header ${currencies.length}`;
      problems.reject('wrong_column_count', message, { line });
      return;
    }
    const date = this.days.read(fields[this.dateAt]);
    if (date instanceof Fault) {
      const column = this.columns.naming(this.dateAt, line);
      problems.rejected += currencies.filter((_, index) => !missing.has(rates[index] ?? '')).length;
      problems.add(date.code, date.message, {
        line,
        column,
        value: shownText(fields[this.dateAt]),
      });
      return;
    }
    for (let index = 0; index < currencies.length; index += 1) {
      const rate = rates[index] ?? '';
      if (missing.has(rate)) continue;
      records.push({ kind: 'rate', line, currency: currencies[index] ?? '', date, rate });
    }
  }
}
