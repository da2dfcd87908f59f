import type { Aggregation } from '../../conversion/aggregate.ts';
import { utcMicroseconds } from '../../db/instant.ts';
import type { Violation } from '../../errors.ts';

/**
 * The revision that a request reads: the newest, the newest at an instant, or a revision in wire
 * format that an option names.
 */
export type RequestedRevision =
  | { readonly kind: 'now' }
  | { readonly kind: 'asOf'; readonly instant: string }
  | { readonly kind: 'revision'; readonly text: string; readonly option: 'revision' | 'cursor' };

/** The validated options of a request. */
export interface PlanOptions {
  readonly includeSeries: boolean;
  readonly includeSummary: boolean;
  readonly strict: boolean;
  /** Currency and unit as sent. The reference data of the snapshot resolves them. */
  readonly currency: string | null;
  readonly unitOfMeasure: string | null;
  readonly onUnconvertible: 'keep' | 'omit' | 'error';
  readonly decimals: number | null;
  readonly aggregate: Aggregation | null;
  readonly requested: RequestedRevision;
  /** Number of last points of each series in the response; null for all. */
  readonly lastObservations: number | null;
  readonly decimalsAsText: boolean;
  /** `all`, `short`, or column names separated by commas, as sent; null is `all`. */
  readonly columns: string | null;
  readonly layout: 'long' | 'wide';
  readonly warnings: 'header' | 'row';
}

interface OptionMembers extends Readonly<Record<string, unknown>> {
  readonly asOf?: unknown;
  readonly revision?: unknown;
}

/** The detail of the violation for an instant in the future. */
export const IN_THE_FUTURE = 'Must not lie in the future';

/** The options that compute values, which `decimals` rounds. */
const COMPUTING = ['currency', 'unitOfMeasure', 'aggregate'];

function needlessDecimals(
  options: OptionMembers,
  brokenPointers: ReadonlySet<string>,
): Violation[] {
  const pointer = '/options/decimals';
  const isNeeded = COMPUTING.some(
    (name) => options[name] !== undefined || brokenPointers.has(`/options/${name}`),
  );
  if (options['decimals'] === undefined || isNeeded || brokenPointers.has(pointer)) return [];
  const detail =
    'decimals rounds converted and aggregated values, and published values are never rounded; ' +
    'omit it, or add currency, unitOfMeasure or aggregate';
  return [{ pointer, code: 'unknown_field', detail }];
}

/** The violations of options about series in a request without series. */
function withoutSeries(options: OptionMembers, brokenPointers: ReadonlySet<string>): Violation[] {
  if (options['includeSeries'] === true || brokenPointers.has('/options/includeSeries')) return [];
  const isWide = options['layout'] === 'wide';
  const names = [
    ...(options['lastObservations'] === undefined ? [] : ['lastObservations']),
    ...(isWide ? ['layout'] : []),
  ];
  return names
    .filter((name) => !brokenPointers.has(`/options/${name}`))
    .map((name) => ({
      pointer: `/options/${name}`,
      code: 'unknown_field',
      detail: `${name} applies to the points of series; add includeSeries, or omit it`,
    }));
}

/** Maximum clock error of a service. The database clock checks instants closer than this. */
const CLOCKS_DIFFER_MS = 86_400_000;

/** Checks the rules that a schema cannot express, for options that passed the schema. */
export function brokenOptions(
  options: OptionMembers,
  brokenPointers: ReadonlySet<string>,
): Violation[] {
  const { asOf, revision } = options;
  const pointer = '/options/asOf';
  const broken = [
    ...needlessDecimals(options, brokenPointers),
    ...withoutSeries(options, brokenPointers),
  ];
  if (asOf !== undefined && revision !== undefined) {
    const detail = 'asOf and revision both name a past revision; omit one of them';
    broken.push({ pointer, code: 'unknown_field', detail });
  }
  if (typeof asOf !== 'string' || brokenPointers.has(pointer)) return broken;
  const isPast = Date.parse(utcMicroseconds(asOf)) <= Date.now() + CLOCKS_DIFFER_MS;
  if (!isPast) broken.push({ pointer, code: 'out_of_range', detail: IN_THE_FUTURE });
  return broken;
}

function requestedRevisionOf(options: OptionMembers): RequestedRevision {
  const { asOf, revision } = options as { asOf?: string; revision?: string };
  if (asOf !== undefined) return { kind: 'asOf', instant: utcMicroseconds(asOf) };
  if (revision !== undefined) return { kind: 'revision', text: revision, option: 'revision' };
  return { kind: 'now' };
}

/** The options of a valid body, with defaults. */
export function optionsOf(options: OptionMembers): PlanOptions {
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
    requested: requestedRevisionOf(options),
    lastObservations: given.lastObservations ?? null,
    decimalsAsText: given.decimalsAsText === true,
    columns: given.columns ?? null,
    layout: given.layout ?? 'long',
    warnings: given.warnings ?? 'header',
  };
}

/**
 * True if a request names a past revision itself. A cursor only continues at the revision of its
 * first page.
 */
export const namesPast = ({ requested }: PlanOptions): boolean =>
  requested.kind === 'asOf' || (requested.kind === 'revision' && requested.option === 'revision');

/** True if a request requests a conversion. */
export const isConverting = (options: PlanOptions): boolean =>
  options.currency !== null || options.unitOfMeasure !== null;
