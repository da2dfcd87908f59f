import { sql } from 'kysely';
import { matchKey } from '../../catalog/match-key.ts';
import { didYouMean } from '../../catalog/nearest.ts';
import type { Descriptions } from '../descriptions/descriptions.ts';
import { type ReferenceData, readReference, type Trx } from '../descriptions/known-names.ts';
import { problemOf } from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import type { Quotation } from '../records/source-record.ts';

interface NotedQuotation {
  readonly quotation: Quotation;
  readonly line: number;
}

/** The currency and unit in which a file quotes each price, by series number. */
export class SeriesQuotations {
  readonly byNumber = new Map<number, NotedQuotation>();
  private readonly problems: Problems;

  constructor(problems: Problems) {
    this.problems = problems;
  }

  /**
   * Notes the quotation of a value.
   * @returns false, after reporting the problem, if it differs from an earlier one
   */
  note(number: number, quotation: Quotation, line: number): boolean {
    const first = this.byNumber.get(number);
    if (!first) {
      this.byNumber.set(number, { quotation, line });
      return true;
    }
    const same = first.quotation;
    if (same === quotation) return true;
    if (same.currency === quotation.currency && same.unit === quotation.unit) return true;
    const rule = 'All values of a price must have one currency and unit';
    const place = { line, value: quotation.published };
    this.problems.reject(
      'conflicting',
      `${rule}; line ${first.line} states ${same.published}`,
      place,
    );
    return false;
  }
}

interface FileStatements {
  readonly quotations: SeriesQuotations;
  readonly descriptions: Descriptions;
}

/** The currency and unit of a price. */
interface PriceQuotation {
  readonly code: string;
  readonly iso: string | null;
  readonly unit_id: number | null;
  readonly unit: string | null;
}

/** The quotations of existing prices and of those that the file describes, by series number. */
async function priceQuotations(
  trx: Trx,
  stated: FileStatements,
  reference: ReferenceData,
): Promise<Map<number, PriceQuotation>> {
  const numbers = [...stated.quotations.byNumber.keys()];
  const { rows } = await sql<PriceQuotation & { series_no: number }>`
    select u.series_no, p.code, r.iso, p.unit_id, m.name as unit
    from pg_temp.load_series u join price p on p.id = u.id
      left join currency r on r.id = p.currency_id join unit_of_measure m on m.id = p.unit_id
    where u.series_no = any(${numbers}::integer[])`.execute(trx);
  const stored = new Map<number, PriceQuotation>(
    rows.map(({ series_no, ...each }) => [series_no, each]),
  );
  for (const number of numbers) {
    const described = stated.descriptions.prices.get(number);
    if (stored.has(number) || !described) continue;
    const { currency, unitOfMeasure } = described.attributes as Record<string, string | null>;
    const unit = reference.units.get(matchKey(unitOfMeasure ?? ''));
    stored.set(number, {
      code: described.code,
      iso: currency?.toUpperCase() ?? null,
      unit_id: unit?.id ?? null,
      unit: unit?.name ?? null,
    });
  }
  return stored;
}

/** Reports a file that quotes a price in another currency or unit. */
function compare(
  stored: PriceQuotation,
  { quotation, line }: NotedQuotation,
  reference: ReferenceData,
  problems: Problems,
): void {
  const place = { line, value: quotation.published };
  const storedText = [stored.iso, stored.unit].filter((each) => each !== null).join(' per ');
  const message = `${stored.code} is in ${storedText}, but the file states ${quotation.published}`;
  if (quotation.currency !== null && quotation.currency !== stored.iso) {
    problems.refuse(problemOf('currency_mismatch', message, place));
  }
  if (quotation.unit === null) return;
  const unit = reference.units.get(matchKey(quotation.unit));
  if (!unit) {
    const names = new Set([...reference.units.values()].map(({ name }) => name));
    const unknown = `There is no such unit${didYouMean(quotation.unit, names)}`;
    problems.refuse(problemOf('unknown_unit', unknown, place));
  } else if (unit.id !== stored.unit_id) {
    const advice = 'units are converted in answers, not in loads: publish a price of its own';
    problems.refuse(problemOf('unit_mismatch', `${message}; ${advice}`, place));
  }
}

/**
 * Compares the currency and unit that the file states with those of the prices. Nothing is
 * converted: a value is stored in the currency and unit of its price, in which it was published.
 */
export async function checkQuotations(
  trx: Trx,
  stated: FileStatements,
  problems: Problems,
): Promise<void> {
  const { byNumber } = stated.quotations;
  if (byNumber.size === 0) return;
  const reference = await readReference(trx);
  const stored = await priceQuotations(trx, stated, reference);
  for (const [number, noted] of byNumber) {
    const price = stored.get(number);
    // An unknown code has a problem of its own.
    if (price) compare(price, noted, reference, problems);
  }
}
