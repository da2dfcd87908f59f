import { randomInt } from 'node:crypto';
import type { Agent } from 'node:http';
import fc from 'fast-check';
import type t from 'tap';
import { seededDatabase } from '../../support/database/database.ts';
import type { FuzzedBody } from '../../support/fuzz/bodies.ts';
import { faultOf, sentTo, valuesOf } from '../../support/fuzz/fuzzing.ts';
import { type ServiceProcess, startServiceProcess } from '../../support/http/service-process.ts';
import { SPECIFIED, type SpecifiedMarket } from '../../support/prices/specification.ts';
import { within } from '../../support/process/figures.ts';
import { HEAP_SAMPLER, heapOf } from '../../support/process/heap.ts';
import { agentOf, countsOf, quantile, send } from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';

/** Bodies of each market and seed. */
const EACH = byLength(45, 300);
/** Concurrent clients. */
const CLIENTS = 4;
const SEEDS = [20_260_701, randomInt(2 ** 31)];

interface Mutant {
  readonly market: SpecifiedMarket;
  readonly sent: FuzzedBody;
}

/**
 * Bodies for all markets alternately, so that the first ones cover everything. The generators read
 * the values of a market from the service.
 */
async function mutantsOf(test: typeof t, service: ServiceProcess): Promise<Mutant[]> {
  const agent = agentOf(test, 1);
  const ask = async (method: string, path: string, body?: string) => {
    const { status, headers, text } = await send(agent, service, {
      method,
      path,
      ...(body ? { body } : {}),
    });
    return { status, headers: headers as Record<string, string>, text, json: JSON.parse(text) };
  };
  const turns: Mutant[][] = Array.from({ length: SEEDS.length * EACH }, () => []);
  for (const market of SPECIFIED) {
    const values = await valuesOf(
      {
        request: ({ method, url }) => ask(method, url),
        post: (slug, body) => ask('POST', `/v3/prices/${slug}`, JSON.stringify(body)),
      },
      market.slug,
    );
    const bodies = SEEDS.flatMap((seed) =>
      fc.sample(sentTo(market, values), { seed, numRuns: EACH }),
    );
    for (const [at, sent] of bodies.entries()) turns[at]?.push({ market, sent });
  }
  return turns.flat();
}

/**
 * Fixes the young generation at its maximum size: otherwise it varies with the load, whatever the
 * bodies are.
 */
const YOUNG_AT_MOST = ['--min-semi-space-size=8'];

/**
 * Makes all clients request the longest answers concurrently: the allocator retains that memory, so
 * it is no growth later.
 */
async function askForLongest(agent: Agent, service: ServiceProcess): Promise<void> {
  const body = JSON.stringify({ options: { includeSeries: true, includeSummary: true } });
  const askEach = async (): Promise<void> => {
    for (const { slug } of SPECIFIED) {
      await send(agent, service, { method: 'POST', path: `/v3/prices/${slug}`, body });
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, askEach));
}

fault(
  'F19',
  'mutated bodies',
  '0 × 5xx; a violation is a 400, 413 or 415 that names its place; ≤ 50 MB more memory after ' +
    'a garbage collection; no answer > 250 ms',
  async (t) => {
    t.comment(`seeds ${SEEDS.join(' and ')}`);
    const service = await startServiceProcess(
      t,
      await seededDatabase(t),
      HEAP_SAMPLER,
      YOUNG_AT_MOST,
    );
    const mutants = await mutantsOf(t, service);
    const agent = agentOf(t, CLIENTS);
    await askForLongest(agent, service);
    const answers: { status: number; ms: number }[] = [];
    const faults: string[] = [];
    const memory = async (): Promise<number> => {
      await heapOf(service);
      return service.memory();
    };
    const sendAll = async (some: readonly Mutant[]): Promise<void> => {
      const rest = some.values();
      const worker = async (): Promise<void> => {
        for (const { market, sent } of rest) {
          const answer = await send(agent, service, {
            method: 'POST',
            path: `/v3/prices/${market.slug}`,
            headers: { 'content-type': sent.type ?? 'application/json' },
            body: sent.bytes,
          });
          answers.push({ status: answer.status, ms: answer.ms });
          const json = answer.status === 0 ? null : JSON.parse(answer.text);
          const fault = faultOf(market, sent, { status: answer.status, json });
          if (fault) faults.push(`${fault}: ${market.slug} ${sent.bytes.toString('utf8', 0, 300)}`);
        }
      };
      await Promise.all(Array.from({ length: CLIENTS }, worker));
    };
    // Code loaded once and the caches of the first thousand requests are not growth. No request
    // runs during the collection, which blocks the event loop for the test.
    const first = Math.min(1_000, mutants.length >> 1);
    await sendAll(mutants.slice(0, first));
    const before = await memory();
    await sendAll(mutants.slice(first));
    t.same(faults, []);
    const counts = countsOf(answers);
    t.ok((counts['200'] ?? 0) > mutants.length / 10, 'a good part was legal');
    return {
      bodies: mutants.length,
      '5xx': answers.filter(({ status }) => status >= 500 || status === 0).length,
      wrong: faults.length,
      longest: within(quantile(answers, 1), 250),
      'memory grew': within((await memory()) - before, 50, 'MB'),
    };
  },
);
