import { type CurrencyRates, hasAnyRate, type RateTable } from '../../conversion/rate-table.ts';
import type { VatRates } from '../../conversion/vat.ts';
import { quoted, type WarningCode } from '../../errors.ts';
import { type Days, dayText } from '../../std/days.ts';
import type { LaterPrice, Unmatched } from '../market/unmatched.ts';
import type { Plan } from '../plan/plan.ts';
import type { Extent } from '../series/ranges.ts';

/** A warning in `$metadata.warnings`. */
export interface Warning {
  readonly code: WarningCode;
  readonly pointer: string;
  readonly detail: string;
  readonly suggestions: readonly string[];
  /** Set for `not_yet_existing`: the code as published, and the commit that added the price. */
  readonly priceCode?: string;
  readonly existsSinceRevision?: string;
  readonly existsSince?: string;
  /**
   * Set for `rates_missing`: the currency, the days of the points without a rate, and its newest
   * rate. The days are null if no point is requested. The newest rate is null if there is none.
   * The first stretches of days without a rate, with their requested points, and the number of
   * further stretches.
   */
  readonly currency?: string;
  readonly firstDateWithoutRate?: string | null;
  readonly lastDateWithoutRate?: string | null;
  readonly lastDateWithRate?: string | null;
  readonly pointsWithoutRate?: number;
  readonly pointsRequested?: number;
  readonly stretchesWithoutRate?: readonly {
    readonly firstDate: string;
    readonly lastDate: string;
    readonly points: number;
  }[];
  readonly moreStretches?: number;
}

/**
 * The warnings for unmatched values. For a code that was added later, the warning names the
 * revision that added it. For a code of another market, the warning names that market only if the
 * credential may read it.
 */
export function unmatchedWarnings(plan: Plan, unmatched: readonly Unmatched[]): Warning[] {
  const { slug } = plan.market;
  return unmatched.map(({ list, index, value, suggestions: near, elsewhere, later }) => {
    const pointer = `/filters/${list}/${index}`;
    if (later !== null) return notYetExisting(pointer, later);
    const isReadable = elsewhere !== null && plan.readableMarkets.includes(elsewhere);
    const suggestions = isReadable ? [] : near;
    const hint = suggestions.length > 0 ? `; did you mean ${suggestions.join(', ')}?` : '';
    const detail = isReadable
      ? `"${quoted(value)}" is a code of ${elsewhere}; ask /v3/prices/${elsewhere} for it`
      : `"${quoted(value)}" matches nothing in ${slug}${hint}`;
    return { code: 'unmatched_value', pointer, detail, suggestions };
  });
}

function notYetExisting(pointer: string, { code, revision, committedAt }: LaterPrice): Warning {
  const since = `it exists since ${committedAt} (revision ${revision})`;
  return {
    code: 'not_yet_existing',
    pointer,
    detail: `"${code}" did not exist yet at the requested revision; ${since}`,
    suggestions: [],
    priceCode: code,
    existsSinceRevision: revision,
    existsSince: committedAt,
  };
}

/** Consecutive days without a rate of a currency, with the requested points on them. */
export interface Stretch extends Days {
  readonly on: Extent;
}

/** Most stretches that a warning lists: several warnings have to fit the header `x-warnings`. */
const STRETCHES_MAX = 5;

const APPLIES = 'a rate applies to its own day and the 7 days after it';

const MEANS_APPLY =
  'the mean of a month or year needs a rate of its last day or later, and no 8 days in a row ' +
  'without one';

/** Words for the stretches of a warning: `2026-01-05 (1), 2026-03-01 to 2026-03-09 (7)`. */
function stretchesText(listed: Required<Warning>['stretchesWithoutRate'], more: number): string {
  const texts = listed.map(({ firstDate, lastDate, points }) => {
    const days = firstDate === lastDate ? firstDate : `${firstDate} to ${lastDate}`;
    return `${days} (${points})`;
  });
  return `${texts.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/**
 * The warning about a currency that lacks a rate for some requested points, or has none at all.
 * @param requested the number of requested points that need the currency, the rates' kind, and
 *   true for `means` if some are converted by the mean of a period, for `days` if some by a day
 * @param stretches the days without a rate, in order and apart
 */
export function ratesMissing(
  source: string,
  rates: CurrencyRates,
  requested: {
    readonly points: number;
    readonly kind: RateTable['kind'];
    readonly means: boolean;
    readonly days: boolean;
  },
  stretches: readonly Stretch[],
): Warning {
  const { iso } = rates;
  const missing = stretches.reduce((sum, { on }) => sum + on.points, 0);
  const listed = stretches.slice(0, STRETCHES_MAX).map(({ on: { first, last, points } }) => ({
    firstDate: dayText(first),
    lastDate: dayText(last),
    points,
  }));
  const more = stretches.length - listed.length;
  const newest = hasAnyRate(rates) ? dayText(rates.lastDay) : null;
  const text = stretchesText(listed, more);
  const applies = [requested.days ? APPLIES : '', requested.means ? MEANS_APPLY : ''];
  const rule = applies.filter((each) => each !== '').join('; ');
  const needed = missing === 0 ? '' : `; ${missing} requested points need one: ${text}`;
  const isWithheld = requested.kind === 'withheld';
  const none = isWithheld
    ? 'for prices that are not samples, as its rates are invented: load published ones'
    : 'at all';
  const detail =
    newest === null
      ? `${source} has no rate of ${iso} ${none}${needed}`
      : `${source} has no rate of ${iso} for ${missing} of ${requested.points} requested points: ` +
        `${text}; its newest one is of ${newest}, and ${rule}`;
  const [begin, end] = [stretches[0], stretches.at(-1)];
  return {
    ...{ code: 'rates_missing', pointer: '/options/currency', detail, suggestions: [] },
    currency: iso,
    firstDateWithoutRate: begin ? dayText(begin.on.first) : null,
    lastDateWithoutRate: end ? dayText(end.on.last) : null,
    lastDateWithRate: newest,
    pointsWithoutRate: missing,
    pointsRequested: requested.points,
    stretchesWithoutRate: listed,
    moreStretches: more,
  };
}

/** The warning about the invented rates of a source. */
export const sampleRates = (source: string, pointer: string): Warning => ({
  code: 'sample_rates',
  pointer,
  detail:
    `The rates of ${source} are invented for demonstration, and so is every number converted by ` +
    'them; load published rates before you use any',
  suggestions: [],
});

/** The warning about refused prices. @param codes the codes by reason */
export const unconvertibleOmitted = (prices: number, codes: string): Warning => ({
  code: 'unconvertible_omitted',
  pointer: '/options/onUnconvertible',
  detail: `${prices} left out, as they cannot be converted. ${codes}`,
  suggestions: [],
});

/** The warning about converted means. @param codes the codes of the prices */
export const meanAtOneDayRate = (prices: number, codes: string, remedy: string): Warning => ({
  code: 'mean_at_one_day_rate',
  pointer: '/options/currency',
  detail:
    `The values of ${prices} converted prices are means of a month or year, and each was ` +
    `converted at the rate of one day: ${codes}. ${remedy} for the mean of the rates of its period`,
  suggestions: [],
});

/** The warning about means within whose period a rate of VAT changed. @param codes of the prices */
export const meanAtOneVatRate = (prices: number, codes: string): Warning => ({
  code: 'mean_at_one_day_rate',
  pointer: '/options/vat',
  detail:
    `The values of ${prices} prices are means of a month or year, and a rate of VAT changed ` +
    `within one; each mean was divided by the rate of one day: ${codes}`,
  suggestions: [],
});

/** The warning about a converted price that includes VAT. @param vat its specification value */
export const vatIncluded = (code: string, vat: string): Warning => ({
  code: 'vat_included',
  pointer: '/options/currency',
  detail:
    `${code} includes VAT (${vat}), and so do its converted numbers; they do not compare with ` +
    'FOB or CIF prices',
  suggestions: [],
});

/** The warning about prices from which no VAT was excluded. @param codes the codes of the prices */
export const vatUnknown = (codes: string): Warning => ({
  code: 'vat_unknown',
  pointer: '/options/vat',
  detail:
    'No VAT was excluded from prices that are not known to include it (vatCountry is null): ' +
    codes,
  suggestions: [],
});

/** The warning about a country that lacks a rate of VAT for requested points, or has none. */
export function vatRatesMissing(
  { country, rates }: VatRates,
  missing: Extent | undefined,
): Warning {
  const [first] = rates;
  const begins = first === undefined ? 'at all' : `before ${dayText(first.from)}`;
  const days = missing && `from ${dayText(missing.first)} to ${dayText(missing.last)}`;
  const points = missing ? `; ${missing.points} requested points need one, ${days}` : '';
  return {
    code: 'vat_rates_missing',
    pointer: '/options/vat',
    detail: `There is no rate of VAT of ${country} ${begins}${points}`,
    suggestions: [],
  };
}

/** The warning about an `x-min-revision` of another history. */
export const MIN_REVISION_UNKNOWN: Warning = {
  code: 'min_revision_unknown',
  pointer: '',
  detail:
    'x-min-revision is of another epoch, or was lost in a failover or a restore; the answer ' +
    'shows the newest revision: discard what you know of earlier revisions',
  suggestions: [],
};
