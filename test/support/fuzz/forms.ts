import fc from 'fast-check';
import type { Format } from '../../../src/contract/schemas/formats.ts';
import type { Members, RequestBody } from './bodies.ts';

const TABLES: readonly Format[] = ['csv', 'rows', 'parquet', 'arrow'];
const TEXTS: readonly Format[] = ['json', 'ndjson', 'rows'];

/** The revision of an answer, and the instant of its commit. */
export interface KnownRevision {
  readonly revision: string;
  readonly asOf: string;
}

/** Options of the form, the page and the revision of an answer, as far as a format has them. */
function formOf(format: Format, { revision, asOf }: KnownRevision): fc.Arbitrary<Members> {
  const columns = fc.constantFrom('all', 'short', 'code,date,mid', 'mid,currency,code');
  const arbitraries = {
    lastObservations: fc.integer({ min: 1, max: 40 }),
    limit: fc.integer({ min: 1, max: 4 }),
    past: fc.constantFrom({ revision }, { asOf }),
    ...(TABLES.includes(format) ? { columns } : {}),
    ...(['csv', 'rows'].includes(format) ? { layout: fc.constantFrom('long', 'wide') } : {}),
    ...(['csv', 'ndjson'].includes(format) ? { warnings: fc.constantFrom('header', 'row') } : {}),
    ...(TEXTS.includes(format) ? { decimalsAsText: fc.boolean() } : {}),
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
    const needsSeries = 'lastObservations' in form || form['layout'] === 'wide';
    const combined: Members = {
      ...options,
      ...form,
      ...('asOf' in options ? {} : (past ?? {})),
      ...(needsSeries ? { includeSeries: true } : {}),
    };
    if (combined['layout'] === 'wide') delete combined['columns'];
    return { filters, options: combined };
  });
