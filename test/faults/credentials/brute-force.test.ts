import { setTimeout as pause } from 'node:timers/promises';
import type t from 'tap';
import { newKey } from '../../../src/auth/keys/format.ts';
import { withChecksum } from '../../support/auth/key-texts.ts';
import { testDatabase } from '../../support/database/database.ts';
import { logSql } from '../../support/database/sql-log.ts';
import { tcpProxyTo } from '../../support/database/tcp-proxy.ts';
import { type ServiceProcess, startServiceProcess } from '../../support/http/service-process.ts';
import { within } from '../../support/process/figures.ts';
import {
  codeOf,
  countsOf,
  type HttpAnswer,
  type HttpRequest,
  send,
  sendAll,
} from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';

type Test = typeof t;

/** Replaces the letter at an index. */
const changed = (text: string, at: number): string =>
  text.slice(0, at) + (text[at] === 'a' ? 'b' : 'a') + text.slice(at + 1);

const ID_AT = 'cps_live_'.length;
const SECRET_AT = ID_AT + 11;

const asking = (key: string): HttpRequest => ({
  path: '/v3/prices',
  headers: { 'x-api-key': key },
});

/** Asserts the answers to invalid keys; returns the number of accepted ones. */
function refusedAll(test: Test, answers: readonly HttpAnswer[], what: string): number {
  const onReply = new Set(answers.map((each) => `${each.status} ${codeOf(each)}`));
  test.same([...onReply], ['401 invalid_api_key'], what);
  return answers.filter(({ status }) => status === 200).length;
}

const median = (answers: readonly HttpAnswer[]): number =>
  answers.map(({ ms }) => ms).toSorted((a, b) => a - b)[answers.length >> 1] ?? 0;

/** Difference of the median latencies of known and unknown key ids, in µs. */
async function difference(service: ServiceProcess, near: readonly string[]): Promise<number> {
  const known: HttpAnswer[] = [];
  const unknown: HttpAnswer[] = [];
  for (const key of near) {
    known.push(await send(false, service, asking(key)));
    unknown.push(await send(false, service, asking(newKey().text)));
  }
  return Math.abs(median(known) - median(unknown)) * 1_000;
}

const FAILED_PER_MINUTE = 30;

/** Concurrent guesses: a request in flight cannot count the failure of another. */
const AT_ONCE = 64;

/**
 * Guesses keys at a service that limits failures per network, many at once whenever the limit
 * allows one more. Returns the number of guesses that the service checked.
 */
async function guessAtOnce(test: Test, service: ServiceProcess): Promise<number> {
  const begun = performance.now();
  let counted = 0;
  for (let burst = 0; burst < byLength(3, 8); burst += 1) {
    await pause(2_100);
    const guesses = Array.from({ length: AT_ONCE }, () => asking(newKey().text));
    const answers = await sendAll(test, service, guesses, AT_ONCE);
    counted += answers.filter(({ status }) => status === 401).length;
  }
  const allowed = Math.ceil((performance.now() - begun) / 2_000);
  test.ok(counted <= allowed + AT_ONCE, `${counted} guesses; ${allowed} allowed, and one burst`);
  return counted;
}

fault(
  'F31',
  'API keys guessed by brute force',
  '0 accepted; no lookup for a bad checksum; the same answer for an unknown id and a wrong ' +
    'secret, in the same time (medians ≤ 50 µs apart); a network is blocked after 30 failures a ' +
    'minute',
  async (t) => {
    const database = await testDatabase(t);
    const proxy = await tcpProxyTo(t, database.url);
    const sqlLog = logSql(proxy);
    const service = await startServiceProcess(t, { ...database, url: proxy.url });
    const lookupsSeen = () => [...sqlLog.texts].filter((text) => /api_key/.test(text)).length;
    const atRandom = Array.from({ length: byLength(1_000, 100_000) }, () => {
      const { text } = newKey();
      return asking(changed(text, text.length - 1));
    });
    const bad = await sendAll(t, service, atRandom);
    let accepted = refusedAll(t, bad, 'a checksum that is wrong');
    const lookups = lookupsSeen();
    t.equal(lookups, 0, 'nothing was looked up for them');
    const valid = Array.from({ length: byLength(400, 10_000) }, () => asking(newKey().text));
    accepted += refusedAll(t, await sendAll(t, service, valid), 'a checksum that is right');
    t.ok(lookupsSeen() > 0, 'the lookup is seen in the SQL log');
    const body = service.key.slice(0, -6);
    const near = Array.from({ length: body.length - ID_AT }, (_, at) => ID_AT + at)
      .filter((at) => at !== SECRET_AT - 1)
      .map((at) => withChecksum(changed(body, at)));
    accepted += refusedAll(t, await sendAll(t, service, near.map(asking)), 'one letter off');
    t.equal((await send(false, service, { path: '/v3/prices' })).status, 200, 'the key itself');
    const wrongSecrets = near.slice(10);
    const rounds = Array.from({ length: byLength(1, 60) }, () => wrongSecrets).flat();
    const apart = await difference(service, rounds);
    const limited = await startServiceProcess(t, database, {
      FAILED_AUTH_PER_MINUTE: String(FAILED_PER_MINUTE),
    });
    const begun = performance.now();
    const guessedFast = await sendAll(t, limited, valid.slice(0, 300), AT_ONCE);
    // The limit admits one more every two seconds; requests in flight do not see others' failures.
    const most = FAILED_PER_MINUTE + AT_ONCE + Math.ceil((performance.now() - begun) / 2_000);
    const counts = countsOf(guessedFast);
    const refused = counts['401'] ?? 0;
    t.ok(refused >= FAILED_PER_MINUTE && refused <= most, `${refused} of at most ${most}`);
    t.same(Object.keys(counts), ['401', '429']);
    t.ok(guessedFast.every(({ status, headers }) => status !== 429 || headers['retry-after']));
    const guessed = await guessAtOnce(t, limited);
    return {
      tried: bad.length + valid.length + near.length + rounds.length * 2 + guessedFast.length,
      accepted,
      'lookups for a bad checksum': lookups,
      'medians apart': within(apart, 50, 'µs'),
      '401 before the network was blocked': refused,
      '401 to bursts of 64 at once, afterwards': guessed,
    };
  },
);
