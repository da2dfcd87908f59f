import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import t from 'tap';
import { matchKey } from '../src/catalog/match-key.ts';
import { PROBLEMS } from '../src/errors.ts';
import {
  anyBytes,
  anyJson,
  KNOWN_CURRENCIES,
  KNOWN_UNITS,
  legal,
  type Sent,
  type Values,
} from './support/bodies.ts';
import { isLegalBody } from './support/body-rules.ts';
import { oneRuleBroken } from './support/broken-bodies.ts';
import { brokenJson, wronglySent } from './support/broken-json.ts';
import { seededDatabase } from './support/database.ts';
import { type Reply, type Service, serviceOn } from './support/service.ts';
import { SPECIFIED, type SpecifiedMarket } from './support/specification.ts';
import { strictJson } from './support/strict-json.ts';

/** Bodies of each market and seed: 17 × 2 × 155 is more than 5,000. */
const RUNS = 155;
const FIXED_SEED = 20_260_630;
const RANDOM_SEED = randomInt(2 ** 31);

const sentTo = (market: SpecifiedMarket, values: Values): fc.Arbitrary<Sent> =>
  fc.oneof(
    { weight: 30, arbitrary: legal(market, values) },
    { weight: 45, arbitrary: oneRuleBroken(market, values) },
    { weight: 12, arbitrary: brokenJson(market, values) },
    { weight: 8, arbitrary: anyJson },
    { weight: 6, arbitrary: anyBytes(market, values) },
    { weight: 4, arbitrary: wronglySent(market, values) },
  );

/** The ids and names that the service itself tells, and the codes of its prices. */
async function valuesOf(service: Service, slug: string): Promise<Values> {
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

/** What a refusal got wrong; null when it is as the contract has it. */
function faultOfRefusal({ broken }: Sent, { status, json }: Reply): string | null {
  const errors: readonly Violation[] = json.errors ?? [];
  if (PROBLEMS[json.code as keyof typeof PROBLEMS]?.[0] !== status) return 'code and status';
  if ((json.code === 'validation_failed') !== errors.length > 0) return 'errors of the wrong kind';
  if (errors.some(({ detail }) => detail.length > 700)) return 'it repeats what was sent';
  if (new Set(errors.map((each) => JSON.stringify(each))).size < errors.length) return 'told twice';
  if (!broken) return null;
  const told = errors.length > 0 ? errors : [{ code: json.code, pointer: undefined }];
  const found = told.some(
    ({ code, pointer }) =>
      code === broken.code && (broken.pointer === undefined || pointer === broken.pointer),
  );
  return found ? null : `it does not tell ${broken.code} at ${broken.pointer}`;
}

const isKnown = (names: readonly string[], name: unknown): boolean =>
  typeof name === 'string' && names.some((each) => matchKey(each) === matchKey(name));

/** What is wrong with the answer to a body; null when nothing is. */
function faultOf(market: SpecifiedMarket, sent: Sent, reply: Reply): string | null {
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

t.test('no body makes the service fail, and none that breaks a rule is answered', async (t) => {
  t.comment(`seeds ${FIXED_SEED} and ${RANDOM_SEED}`);
  const service = await serviceOn(t, await seededDatabase(t));
  const counts: Record<number, number> = {};
  const check = async (market: SpecifiedMarket, sent: Sent): Promise<void> => {
    const reply = await service.request({
      method: 'POST',
      url: `/v3/prices/${market.slug}`,
      headers: { 'content-type': sent.type ?? 'application/json' },
      payload: sent.bytes,
    });
    counts[reply.status] = (counts[reply.status] ?? 0) + 1;
    const fault = faultOf(market, sent, reply);
    if (!fault) return;
    const text = sent.bytes.toString('utf8').slice(0, 400);
    throw new Error(`${fault}: ${market.slug} ${sent.what} ${text} → ${reply.text.slice(0, 600)}`);
  };
  for (const market of SPECIFIED) {
    const values = await valuesOf(service, market.slug);
    for (const seed of [FIXED_SEED, RANDOM_SEED]) {
      await fc.assert(
        fc.asyncProperty(sentTo(market, values), (sent) => check(market, sent)),
        { seed, numRuns: RUNS },
      );
    }
  }
  t.comment(JSON.stringify(counts));
  t.ok(Object.values(counts).reduce((sum, each) => sum + each, 0) > 5_000);
  t.ok((counts[200] ?? 0) > 800, 'a good part was legal');
  t.ok(
    [400, 413, 415].every((status) => (counts[status] ?? 0) > 20),
    'each refusal was met',
  );
  t.equal(({} as Record<string, unknown>)['polluted'], undefined, 'no prototype was polluted');
});
