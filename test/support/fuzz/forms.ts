import fc from 'fast-check';
import { type Format, formatsOf } from '../../../src/contract/schemas/formats.ts';
import { OPTION_NAMES, type OptionName, optionOf } from '../../../src/contract/schemas/options.ts';
import type { Members, RequestBody } from './bodies.ts';

/** Good values of the options that other random bodies lack. */
const VALUES: Readonly<Partial<Record<OptionName, fc.Arbitrary<unknown>>>> = {
  lastObservations: fc.integer({ min: 1, max: 40 }),
  limit: fc.integer({ min: 1, max: 4 }),
  decimalsAsText: fc.boolean(),
  columns: fc.constantFrom('all', 'short', 'code,date,mid', 'mid,currency,code'),
  layout: fc.constantFrom('long', 'wide'),
  warnings: fc.constantFrom('header', 'row'),
  movingAverage: fc.integer({ min: 1, max: 40 }),
  rates: fc.constantFrom('day', 'period-mean'),
  csvDialect: fc.constantFrom('comma', 'semicolon'),
  vat: fc.constantFrom('as-published', 'exclude'),
};

/** The revision of an answer, and the instant of its commit. */
export interface KnownRevision {
  readonly revision: string;
  readonly asOf: string;
}

/** Options of the form, the page and the revision of an answer, as far as a format has them. */
function formOf(format: Format, { revision, asOf }: KnownRevision): fc.Arbitrary<Members> {
  const applying = OPTION_NAMES.filter((name) => formatsOf(name).includes(format));
  const arbitraries = {
    past: fc.constantFrom({ revision }, { asOf }),
    ...Object.fromEntries(
      applying.flatMap((name) => {
        const values = VALUES[name];
        return values === undefined ? [] : [[name, values] as const];
      }),
    ),
  };
  return fc.record<Members>(arbitraries, { requiredKeys: [] });
}

/** The same body with options of the form; options that exclude each other are not combined. */
export const withForm = (
  { filters, options }: RequestBody,
  format: Format,
  known: KnownRevision,
): fc.Arbitrary<RequestBody> =>
  formOf(format, known).map(({ past, ...form }) => {
    const needsSeries = OPTION_NAMES.some((name) => name in form && optionOf(name).needsSeries);
    const combined: Members = {
      ...options,
      ...form,
      ...('asOf' in options ? {} : (past ?? {})),
      ...(needsSeries ? { includeSeries: true } : {}),
    };
    if (combined['layout'] === 'wide') delete combined['columns'];
    if (combined['layout'] === 'wide' || 'aggregate' in combined) delete combined['movingAverage'];
    return { filters, options: combined };
  });
