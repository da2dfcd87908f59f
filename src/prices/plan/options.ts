import type { Aggregation } from '../../conversion/aggregate.ts';
import { utcMicroseconds } from '../../db/instant.ts';
import type { Violation } from '../../errors.ts';

/**
 * Which past an answer is of: a moment, a revision as on the wire that an option names, or neither
 * for now.
 */
export type Moment =
  | { readonly kind: 'now' }
  | { readonly kind: 'asOf'; readonly instant: string }
  | { readonly kind: 'revision'; readonly text: string; readonly option: 'revision' | 'cursor' };

/** The validated options of a request. */
export interface PlanOptions {
  readonly includeSeries: boolean;
  readonly includeSummary: boolean;
  readonly strict: boolean;
  /** As sent; which currency and unit they mean is known only beside the reference data. */
  readonly currency: string | null;
  readonly unitOfMeasure: string | null;
  readonly onUnconvertible: 'keep' | 'omit' | 'error';
  readonly decimals: number | null;
  readonly aggregate: Aggregation | null;
  readonly moment: Moment;
  /** Points at the end of each series that are shown; null shows all. */
  readonly lastObservations: number | null;
  readonly decimalsAsText: boolean;
  /** As sent: `all`, `short`, or names with commas between them; null is `all`. */
  readonly columns: string | null;
  readonly layout: 'long' | 'wide';
  readonly warnings: 'header' | 'row';
}

interface Members extends Readonly<Record<string, unknown>> {
  readonly asOf?: unknown;
  readonly revision?: unknown;
}

/** The detail of the violation for a moment in the future. */
export const IN_THE_FUTURE = 'Must not lie in the future';

/** The options that compute values, and so are rounded to `decimals`. */
const COMPUTING = ['currency', 'unitOfMeasure', 'aggregate'];

function needlessDecimals(options: Members, brokenPlaces: ReadonlySet<string>): Violation[] {
  const pointer = '/options/decimals';
  const isNeeded = COMPUTING.some(
    (name) => options[name] !== undefined || brokenPlaces.has(`/options/${name}`),
  );
  if (options['decimals'] === undefined || isNeeded || brokenPlaces.has(pointer)) return [];
  const detail =
    'decimals rounds converted and aggregated values, and published values are never rounded; ' +
    'leave it out, or add currency, unitOfMeasure or aggregate';
  return [{ pointer, code: 'unknown_field', detail }];
}

/** The violation of an option that cuts or lays out a series, where no series is asked for. */
function withoutSeries(options: Members, brokenPlaces: ReadonlySet<string>): Violation[] {
  if (options['includeSeries'] === true || brokenPlaces.has('/options/includeSeries')) return [];
  const isWide = options['layout'] === 'wide';
  const names = [
    ...(options['lastObservations'] === undefined ? [] : ['lastObservations']),
    ...(isWide ? ['layout'] : []),
  ];
  return names
    .filter((name) => !brokenPlaces.has(`/options/${name}`))
    .map((name) => ({
      pointer: `/options/${name}`,
      code: 'unknown_field',
      detail: `${name} is about the points of series; add includeSeries, or leave it out`,
    }));
}

/** No clock of a service is wrong by more; closer moments are left to the clock of the database. */
const CLOCKS_DIFFER_MS = 86_400_000;

/** The rules of the options that a schema cannot say; of those that the schema has let pass. */
export function brokenOptions(options: Members, brokenPlaces: ReadonlySet<string>): Violation[] {
  const { asOf, revision } = options;
  const pointer = '/options/asOf';
  const broken = [
    ...needlessDecimals(options, brokenPlaces),
    ...withoutSeries(options, brokenPlaces),
  ];
  if (asOf !== undefined && revision !== undefined) {
    const detail = 'asOf and revision both name a past state; leave one of them out';
    broken.push({ pointer, code: 'unknown_field', detail });
  }
  if (typeof asOf !== 'string' || brokenPlaces.has(pointer)) return broken;
  const isPast = Date.parse(utcMicroseconds(asOf)) <= Date.now() + CLOCKS_DIFFER_MS;
  if (!isPast) broken.push({ pointer, code: 'out_of_range', detail: IN_THE_FUTURE });
  return broken;
}

function momentOf(options: Members): Moment {
  const { asOf, revision } = options as { asOf?: string; revision?: string };
  if (asOf !== undefined) return { kind: 'asOf', instant: utcMicroseconds(asOf) };
  if (revision !== undefined) return { kind: 'revision', text: revision, option: 'revision' };
  return { kind: 'now' };
}

/** The options of a body that broke no rule. */
export function optionsOf(options: Members): PlanOptions {
  const given = options as Partial<PlanOptions>;
  return {
    includeSeries: given.includeSeries === true,
    includeSummary: given.includeSummary === true,
    strict: given.strict === true,
    currency: given.currency ?? null,
    unitOfMeasure: given.unitOfMeasure ?? null,
    onUnconvertible: given.onUnconvertible ?? 'keep',
    decimals: given.decimals ?? null,
    aggregate: given.aggregate ?? null,
    moment: momentOf(options),
    lastObservations: given.lastObservations ?? null,
    decimalsAsText: given.decimalsAsText === true,
    columns: given.columns ?? null,
    layout: given.layout ?? 'long',
    warnings: given.warnings ?? 'header',
  };
}

/**
 * True if a request names a past state itself. A cursor only goes on at the state of its first
 * page, which knew of nothing later.
 */
export const namesPast = ({ moment }: PlanOptions): boolean =>
  moment.kind === 'asOf' || (moment.kind === 'revision' && moment.option === 'revision');

/** True if a request asks for a conversion. */
export const isConverting = (options: PlanOptions): boolean =>
  options.currency !== null || options.unitOfMeasure !== null;
