import {
  COMPUTING,
  OPTION_NAMES,
  OPTIONS,
  optionOf,
  PLAN_OPTION_NAMES,
  type PlanOptionName,
} from '../../contract/schemas/options.ts';
import { utcMicroseconds } from '../../db/instant.ts';
import { eitherOf, type Violation } from '../../errors.ts';

/**
 * The revision that a request reads: the newest, the newest at an instant, or a revision in wire
 * format that an option names.
 */
export type RequestedRevision =
  | { readonly kind: 'now' }
  | { readonly kind: 'asOf'; readonly instant: string }
  | { readonly kind: 'revision'; readonly text: string; readonly option: 'revision' | 'cursor' };

/** The validated options of a request, with the defaults of the table. */
export type PlanOptions = {
  readonly [Name in PlanOptionName]: (typeof OPTIONS)[Name]['default'];
} & { readonly requested: RequestedRevision };

interface OptionMembers extends Readonly<Record<string, unknown>> {
  readonly asOf?: unknown;
  readonly revision?: unknown;
  readonly movingAverage?: unknown;
  readonly aggregate?: unknown;
  readonly layout?: unknown;
}

/** The detail of the violation for an instant in the future. */
export const IN_THE_FUTURE = 'Must not lie in the future';

/** Checks the rules that a schema cannot express, for options that passed the schema. */
export function brokenOptions(
  options: OptionMembers,
  brokenPointers: ReadonlySet<string>,
): Violation[] {
  const { asOf, revision } = options;
  const pointer = '/options/asOf';
  const broken = [
    ...needlessRounding(options, brokenPointers),
    ...withoutSeries(options, brokenPointers),
    ...misplacedAverage(options, brokenPointers),
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

/** The violations of options that round, without a number to round. */
function needlessRounding(
  options: OptionMembers,
  brokenPointers: ReadonlySet<string>,
): Violation[] {
  const isNeeded = COMPUTING.some(
    (name) => options[name] !== undefined || brokenPointers.has(`/options/${name}`),
  );
  if (isNeeded) return [];
  return OPTION_NAMES.filter(
    (name) => optionOf(name).effect === 'rounds' && options[name] !== undefined,
  )
    .filter((name) => !brokenPointers.has(`/options/${name}`))
    .map((name) => ({
      pointer: `/options/${name}`,
      code: 'unknown_field',
      detail:
        `${name} rounds converted and aggregated values, and published values are never ` +
        `rounded; omit it, or add ${eitherOf(COMPUTING)}`,
    }));
}

/** The violations of options about series in a request without series. */
function withoutSeries(options: OptionMembers, brokenPointers: ReadonlySet<string>): Violation[] {
  if (options['includeSeries'] === true || brokenPointers.has('/options/includeSeries')) return [];
  return PLAN_OPTION_NAMES.filter((name) => optionOf(name).needsSeries)
    .filter((name) => options[name] !== undefined && options[name] !== OPTIONS[name].default)
    .filter((name) => !brokenPointers.has(`/options/${name}`))
    .map((name) => ({
      pointer: `/options/${name}`,
      code: 'unknown_field',
      detail: `${name} applies to the points of series; add includeSeries, or omit it`,
    }));
}

/** The violation of a moving average in an answer whose values are no published sessions. */
function misplacedAverage(
  { movingAverage, aggregate, layout }: OptionMembers,
  brokenPointers: ReadonlySet<string>,
): Violation[] {
  const pointer = '/options/movingAverage';
  const other = aggregate !== undefined ? 'aggregate' : layout === 'wide' ? 'layout' : null;
  if (movingAverage === undefined || other === null || brokenPointers.has(pointer)) return [];
  const has = other === 'layout' ? 'A wide table has mids only' : 'An aggregate has no sessions';
  return [{ pointer, code: 'unknown_field', detail: `${has}; omit movingAverage, or ${other}` }];
}

/** Maximum clock error of a service. The database clock checks instants closer than this. */
const CLOCKS_DIFFER_MS = 86_400_000;

function requestedRevisionOf(options: OptionMembers): RequestedRevision {
  const { asOf, revision } = options as { asOf?: string; revision?: string };
  if (asOf !== undefined) return { kind: 'asOf', instant: utcMicroseconds(asOf) };
  if (revision !== undefined) return { kind: 'revision', text: revision, option: 'revision' };
  return { kind: 'now' };
}

/** The options of a valid body, with defaults. */
export function optionsOf(options: OptionMembers): PlanOptions {
  const values = Object.fromEntries(
    PLAN_OPTION_NAMES.map((name) => [name, options[name] ?? OPTIONS[name].default]),
  );
  return { ...(values as PlanOptions), requested: requestedRevisionOf(options) };
}

/** The options that differ from their defaults, in the order of the table. */
export const usedOptions = (options: PlanOptions): PlanOptionName[] =>
  PLAN_OPTION_NAMES.filter((name) => options[name] !== OPTIONS[name].default);

/**
 * True if a request names a past revision itself. A cursor only continues at the revision of its
 * first page.
 */
export const namesPast = ({ requested }: PlanOptions): boolean =>
  requested.kind === 'asOf' || (requested.kind === 'revision' && requested.option === 'revision');

/** True if a request requests a conversion, of which the exclusion of VAT is one. */
export const isConverting = (options: PlanOptions): boolean =>
  options.currency !== null || options.unitOfMeasure !== null || options.vat === 'exclude';

/** True if the numbers of points are computed: converted or aggregated. */
export const isComputed = (options: PlanOptions): boolean => firstComputing(options) !== undefined;

/** The first option that computes numbers; undefined if they are as published. */
export const firstComputing = (options: PlanOptions): PlanOptionName | undefined =>
  usedOptions(options).find((name) => COMPUTING.includes(name));
