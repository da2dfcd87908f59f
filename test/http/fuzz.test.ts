import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';
import type { FuzzedBody } from '../support/fuzz/bodies.ts';
import { faultOf, sentTo, valuesOf } from '../support/fuzz/fuzzing.ts';
import { serviceOn } from '../support/http/service.ts';
import { SPECIFIED, type SpecifiedMarket } from '../support/prices/specification.ts';

/** Bodies of each market and seed: 17 × 2 × 155 is more than 5,000. */
const RUNS = 155;
const FIXED_SEED = 20_260_630;
const RANDOM_SEED = randomInt(2 ** 31);

t.test('no body makes the service fail, and none that breaks a rule is answered', async (t) => {
  t.comment(`seeds ${FIXED_SEED} and ${RANDOM_SEED}`);
  const service = await serviceOn(t, await seededDatabase(t));
  const counts: Record<number, number> = {};
  const check = async (market: SpecifiedMarket, sent: FuzzedBody): Promise<void> => {
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
  for (const [at, market] of SPECIFIED.entries()) {
    const values = await valuesOf(service, market.slug);
    for (const seed of [FIXED_SEED, RANDOM_SEED]) {
      await fc.assert(
        fc.asyncProperty(sentTo(market, values), (sent) => check(market, sent)),
        // With the same seed the bodies of all markets would be of the same kinds.
        { seed: seed + at, numRuns: RUNS },
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
