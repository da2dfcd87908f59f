import type { Service } from '../http/service.ts';
import {
  type OraclePrice,
  parseExact,
  pointsWithin,
  pointText,
  selected,
  unmatched,
} from './oracle.ts';
import type { FilterRequest } from './requests.ts';

/** The parts of an answer that a filter can change; numbers are the text that was sent. */
export interface FilterAnswer {
  readonly codes: readonly string[];
  readonly points: readonly (readonly string[])[];
  readonly latest: readonly (string | null)[];
  /** Pointers of the warnings. */
  readonly unmatched: readonly string[];
  readonly count: string;
}

interface SentRecord {
  readonly code: string;
  readonly lastAssessedAt: string | null;
  readonly series: readonly { readonly [member: string]: string | null }[];
}

/** Sends a request without the openapi.yaml check, which takes longer than the answer. */
export async function filterAnswer(
  { app, key }: Service,
  { slug, filters, includeSeries }: FilterRequest,
): Promise<FilterAnswer> {
  const answer = await app.inject({
    method: 'POST',
    url: `/v3/prices/${slug}`,
    headers: { 'x-api-key': key },
    payload: { filters, options: { includeSeries } },
  });
  if (answer.statusCode !== 200) throw new Error(answer.body);
  const { $metadata, data } = parseExact(answer.body);
  const records: readonly SentRecord[] = data;
  return {
    codes: records.map((each) => each.code),
    points: records.map((each) => each.series.map((point) => pointText(...Object.values(point)))),
    latest: records.map((each) => each.lastAssessedAt),
    unmatched: $metadata.warnings.map((each: { pointer: string }) => each.pointer).sort(),
    count: $metadata.count,
  };
}

/** The expected answer by the plain tables. */
export function expectedAnswer(
  all: readonly OraclePrice[],
  { slug, filters, includeSeries }: FilterRequest,
): FilterAnswer {
  const prices = selected(all, slug, filters);
  return {
    codes: prices.map((each) => each.code),
    points: prices.map((each) => (includeSeries ? pointsWithin(each, filters) : [])),
    latest: prices.map((each) => each.points.at(-1)?.[0] ?? null),
    unmatched: unmatched(all, slug, filters),
    count: String(prices.length),
  };
}
