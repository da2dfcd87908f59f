import fc from 'fast-check';
import { matchKey } from '../../../src/catalog/match-key.ts';
import { PROBLEMS, VIOLATIONS } from '../../../src/errors.ts';
import type { Reply, Service } from '../http/service.ts';
import type { SpecifiedMarket } from '../prices/specification.ts';
import {
  anyBytes,
  anyJson,
  type FuzzedBody,
  KNOWN_CURRENCIES,
  KNOWN_UNITS,
  legal,
  type ValuesByFilter,
} from './bodies.ts';
import { isLegalBody } from './body-rules.ts';
import { oneRuleBroken } from './broken-bodies.ts';
import { brokenJson, wronglySent } from './broken-json.ts';
import { strictJson } from './strict-json.ts';

/** Bodies for a market: legal ones, broken ones of every kind, and bytes. */
export const sentTo = (market: SpecifiedMarket, values: ValuesByFilter): fc.Arbitrary<FuzzedBody> =>
  fc.oneof(
    { weight: 30, arbitrary: legal(market, values) },
    { weight: 45, arbitrary: oneRuleBroken(market, values) },
    { weight: 12, arbitrary: brokenJson(market, values) },
    { weight: 8, arbitrary: anyJson },
    { weight: 6, arbitrary: anyBytes(market, values) },
    { weight: 4, arbitrary: wronglySent(market, values) },
  );

/** The ids and names from the filters endpoint, and the codes of the prices. */
export async function valuesOf(
  service: Pick<Service, 'request' | 'post'>,
  slug: string,
): Promise<ValuesByFilter> {
  const url = `/v3/prices/${slug}/filters`;
  const { data } = (await service.request({ method: 'GET', url })).json;
  const values = Object.entries(data).map(([filter, list]): [string, string[]] => [
    filter,
    (list as { id: string; name: string }[]).flatMap(({ id, name }) => [id, name]),
  ]);
  const prices = (await service.post(slug, {})).json.data as { code: string }[];
  return { ...Object.fromEntries(values), codes: prices.map((each) => each.code) };
}

interface Violation {
  readonly pointer: string;
  readonly code: string;
  readonly detail: string;
}

/** The fault of a rejection by the contract; null for none. */
function faultOfRefusal(
  { broken }: FuzzedBody,
  { status, json }: Pick<Reply, 'status' | 'json'>,
): string | null {
  const errors: readonly Violation[] = json.errors ?? [];
  if (PROBLEMS[json.code as keyof typeof PROBLEMS]?.[0] !== status) return 'code and status';
  const hasErrors = json.code in VIOLATIONS || json.code === 'validation_failed';
  if (hasErrors !== errors.length > 0) return 'errors of the wrong kind';
  if (json.code in VIOLATIONS && errors.some(({ code }) => code !== json.code))
    return 'another code';
  if (errors.some(({ detail }) => detail.length > 700)) return 'the answer repeats the sent text';
  if (new Set(errors.map((each) => JSON.stringify(each))).size < errors.length)
    return 'reported twice';
  if (!broken) return null;
  const reported = errors.length > 0 ? errors : [{ code: json.code, pointer: undefined }];
  const found = reported.some(
    ({ code, pointer }) =>
      code === broken.code && (broken.pointer === undefined || pointer === broken.pointer),
  );
  return found ? null : `the answer does not report ${broken.code} at ${broken.pointer}`;
}

const isKnown = (names: readonly string[], name: unknown): boolean =>
  typeof name === 'string' && names.some((each) => matchKey(each) === matchKey(name));

/** The fault of the answer to a body; null for none. */
export function faultOf(
  market: SpecifiedMarket,
  sent: FuzzedBody,
  reply: Pick<Reply, 'status' | 'json'>,
): string | null {
  const { status, json } = reply;
  const body = strictJson(sent.bytes);
  const isLegal = sent.broken === undefined && isLegalBody(market, body);
  if (status === 200) {
    if (!isLegal) return 'an illegal body was answered';
    const { $metadata, data } = json;
    return $metadata.market === market.slug && $metadata.count === data.length ? null : 'metadata';
  }
  if (![400, 413, 415].includes(status)) return `status ${status}`;
  if (isLegal) {
    const { options = {} } = body as { options?: Readonly<Record<string, unknown>> };
    if (json.code === 'unconvertible_records' && options['onUnconvertible'] === 'error')
      return null;
    const errors: readonly Violation[] = json.errors ?? [];
    const may: Readonly<Record<string, boolean>> = {
      unmatched_value: options['strict'] === true,
      // Before the first revision nothing is known of any currency or unit; and a byte that was
      // changed may have made another name of one.
      unknown_currency: 'asOf' in options || !isKnown(KNOWN_CURRENCIES, options['currency']),
      unknown_unit: 'asOf' in options || !isKnown(KNOWN_UNITS, options['unitOfMeasure']),
    };
    return errors.length > 0 && errors.every(({ code }) => may[code])
      ? null
      : 'a legal body was refused';
  }
  return faultOfRefusal(sent, reply);
}
