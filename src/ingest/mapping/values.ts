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
import type { PointColumns, TableColumns } from './columns.ts';
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

/** The rules of the numbers of a table. */
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

/** A code that the mapping says to leave out. */
const SKIPPED = Symbol('skipped');
type Code = string | Fault | typeof SKIPPED;

/** Reads codes: as they stand, or what the mapping says that a text stands for. */
function codeReader({ code }: Mapping): (field: Field | undefined) => Code {
  const translate = code?.translate && new Map(Object.entries(code.translate));
  return (field) => {
    const text = textOf(field, 'invalid_code');
    if (!translate || text instanceof Fault) return text;
    const meant = translate.get(text);
    if (meant !== undefined) return meant;
    if (code?.others === 'skip') return SKIPPED;
    const hint = didYouMean(text.slice(0, 64), translate.keys());
    return new Fault('unknown_code', `The mapping translates this to no code${hint}`);
  };
}

/** Makes points of rows. What cannot be read is noted as a problem, with its place. */
export class PointReader {
  private readonly templates: readonly PointColumns[];
  private readonly terms: readonly (QuotationReader | null)[];
  private readonly rules: NumberRules;
  private readonly days: DayReader;
  private readonly publication: PublicationReader | null;
  private readonly codeOf: (field: Field | undefined) => Code;
  private readonly hasPlaces: boolean;
  private readonly problems: Problems;
  private code: Code | null = null;
  private date: string | Fault | null = null;
  private noted: Fault | null = null;

  constructor(
    mapping: Mapping,
    columns: TableColumns,
    templates: readonly PointColumns[],
    { is1904, hasPlaces }: { readonly is1904: boolean; readonly hasPlaces: boolean },
    problems: Problems,
  ) {
    const readers = new Map(
      templates.flatMap(({ published }) =>
        published ? [[published, new QuotationReader(published, columns)] as const] : [],
      ),
    );
    this.templates = templates;
    this.terms = templates.map(({ published }) => (published && readers.get(published)) ?? null);
    this.rules = numberRules(mapping);
    this.days = new DayReader(mapping.date ?? {}, is1904);
    this.publication = mapping.publishedAt
      ? new PublicationReader(mapping.publishedAt, is1904)
      : null;
    this.codeOf = codeReader(mapping);
    this.hasPlaces = hasPlaces;
    this.problems = problems;
  }

  /** Adds the points of a row; one without a single value is none. */
  take(row: TableRow, records: PointRecord[]): void {
    this.code = null;
    this.date = null;
    this.noted = null;
    for (let index = 0; index < this.templates.length; index += 1) {
      const template = this.templates[index] as PointColumns;
      if (this.isWithout(row, template)) continue;
      const point = this.point(row, template, this.terms[index] ?? null);
      if (point) records.push(point);
    }
  }

  private isWithout({ fields }: TableRow, { low, mid, high }: PointColumns): boolean {
    return (
      isMissing(fields[mid], this.rules) &&
      (low < 0 || isMissing(fields[low], this.rules)) &&
      (high < 0 || isMissing(fields[high], this.rules))
    );
  }

  /** Notes why there is no point; a fault that all points of a row share is told once. */
  private reject(row: TableRow, column: string, field: Field | undefined, fault: Fault): null {
    this.problems.rejected += 1;
    if (this.noted !== fault) {
      const place = { line: row.line, column, value: shownText(field) || null };
      this.problems.add(fault.code, fault.message, place);
    }
    this.noted = fault;
    return null;
  }

  /** Whether none of its columns holds anything. */
  private isEmpty({ fields }: TableRow, { low, mid, high }: PointColumns): boolean {
    return [low, mid, high].every((at) => at < 0 || isEmpty(fields[at]));
  }

  private point(
    row: TableRow,
    template: PointColumns,
    reader: QuotationReader | null,
  ): PointRecord | null {
    const { places } = template;
    const { line, fields } = row;
    // The points of a row share its code and its date, which are read once.
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
      // A note below the table has neither a date nor a value.
      if (this.isEmpty(row, template)) return null;
      return this.reject(row, name('date'), dateField, date);
    }
    const terms = reader?.read(row) ?? null;
    if (terms && 'fault' in terms) {
      return this.reject(row, terms.column, undefined, terms.fault);
    }
    const low = this.value(row, template, 'low', terms);
    if (low === undefined) return null;
    const mid = this.value(row, template, 'mid', terms);
    if (mid === undefined) return null;
    const high = this.value(row, template, 'high', terms);
    if (high === undefined) return null;
    const time = fields[template.publishedAt];
    const publishedAt = this.publication?.read(time, date) ?? null;
    if (publishedAt instanceof Fault) {
      return this.reject(row, name('publishedAt'), time, publishedAt);
    }
    if (!this.hasPlaces) {
      return { kind: 'point', line, code, date, low, mid, high, publishedAt, terms };
    }
    const written = this.writtenOf(row, template, [low, mid, high]);
    return { kind: 'point', line, code, date, low, mid, high, publishedAt, places, terms, written };
  }

  /** Values as they stand in the file; null where they are read as they stand. */
  private writtenOf(
    { fields }: TableRow,
    { low, mid, high }: PointColumns,
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

  /** A value in the terms of its price; undefined when it is wrong, which has been noted. */
  private value(
    row: TableRow,
    template: PointColumns,
    name: 'low' | 'mid' | 'high',
    terms: ScaledQuotation | null,
  ): string | null | undefined {
    const at = template[name];
    if (at < 0) return null;
    const field = row.fields[at];
    const value = numberOf(field, this.rules, terms !== null && isPercent(terms));
    if (value instanceof Fault) {
      this.reject(row, template.places.nameOf(name, row.line), field, value);
      return undefined;
    }
    return value === null || !terms?.factor ? value : multiplied(value, terms.factor);
  }
}

/**
 * The currencies over the columns of a table, which name themselves: they come and go over the
 * years. TableColumns without a heading at the end of the table are none.
 * @throws Refusal for a heading that is no currency, or is there twice
 */
function currenciesOf({ header }: TableColumns, first: number): string[] {
  const line = header?.line ?? null;
  const names = (header?.fields ?? []).slice(first).map((field) => shownText(field).trim());
  const currencies = names.slice(0, names.findLastIndex((name) => name !== '') + 1);
  for (const [index, value] of currencies.entries()) {
    if (!/^[A-Z]{3}$/.test(value)) {
      const message = 'The header names something that is no currency code';
      throw new Refusal('unknown_column', message, { line, value });
    }
    if (currencies.indexOf(value) < index) {
      throw new Refusal('duplicate', 'The header names a currency twice', { line, value });
    }
  }
  if (currencies.length > 0) return currencies;
  throw new Refusal('missing_column', 'The header names no currency', { line });
}

/** Makes rates of the rows of a table with a currency over each column. */
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
