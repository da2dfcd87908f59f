import type t from 'tap';
import { publicIdOf } from '../../../src/auth/keys/format.ts';
import { showKey } from '../../../src/auth/keys/info.ts';
import { createKey, revokeKey, rotateKey } from '../../../src/auth/keys/keys.ts';
import { type TestDatabase, testDatabase } from '../../support/database/database.ts';
import { keyFor } from '../../support/http/service.ts';
import { startServiceProcess } from '../../support/http/service-process.ts';
import { until } from '../../support/http/sockets.ts';
import { within } from '../../support/process/figures.ts';
import { codeOf, type HttpAnswer, openLoad } from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';

type Test = typeof t;

const ASK = { path: '/v3/prices' };
const PER_SECOND = 50;
/** Lifetimes of the key that expires under load and of the rotated key. */
const LIFE_MS = 4_000;
/** Tolerance of an expiry. */
const SECOND = 1_000;

const idOf = (key: string): string => publicIdOf(key) ?? '';

/** Terminates all sessions of the service, including the LISTEN session. */
async function endSessions({ pool }: TestDatabase): Promise<void> {
  await pool.query(`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name like 'commodity-prices%'
      and application_name <> 'commodity-prices test'`);
}

/** Allows for a machine that reconnects slowly: it looks like a database outage. */
const isAway = (each: HttpAnswer): boolean =>
  /^(database|auth)_unavailable$/.test(codeOf(each) ?? '');

/** Revokes a key under load; returns how long it still worked, in ms. */
async function revoked(test: Test, isDeaf: boolean): Promise<{ sent: number; workedMs: number }> {
  const database = await testDatabase(test);
  const service = await startServiceProcess(test, database);
  const key = await keyFor(database, ['prices:*']);
  const load = openLoad(test, { ...service, key }, [{ path: '/v3/prices' }], 50);
  await until('the key is accepted', () => load.answers.length >= 20);
  test.ok(load.answers.every(({ status }) => status === 200));
  if (isDeaf) {
    await endSessions(database);
  }
  const id = idOf(key);
  await revokeKey(database.db, id, 'a test');
  const at = performance.now();
  await until('the key is refused', () => load.answers.some(({ status }) => status === 401));
  const seen = load.sent();
  await until('further requests are answered', () => load.answers.length >= seen + 50);
  const answers = (await load.stop()).filter((each) => !isDeaf || !isAway(each));
  const codes = new Set(answers.filter(({ status }) => status !== 200).map(codeOf));
  test.same([...codes], ['api_key_revoked']);
  test.ok(answers.slice(-20).every(({ status }) => status === 401));
  const lastGood = Math.max(
    ...answers.filter(({ status }) => status === 200).map((a) => a.endedAt),
  );
  return { sent: answers.length, workedMs: Math.max(0, lastGood - at) };
}

/** The observations of a key with its own expiry. */
interface ObservedUse {
  readonly sent: number;
  /** Milliseconds from its expiry to the last 200; 0 if none came later. */
  readonly workedMs: number;
}

/** Converts a database time to `performance.now()`: both run on one machine. */
const timeOf = (instant: string | null): number =>
  Date.parse(instant ?? '') - (Date.now() - performance.now());

/** True if a request was sent more than a second after its key expired. */
const isLate = ({ endedAt, ms }: HttpAnswer, end: number): boolean => endedAt - ms >= end + SECOND;

/** Checks that a key worked until its expiry, to the second, and no longer. */
function validUntilItsEnd(
  test: Test,
  what: string,
  answers: readonly HttpAnswer[],
  expiresAt: string | null,
): ObservedUse {
  const end = timeOf(expiresAt);
  const codesOf = (some: readonly HttpAnswer[]) => [
    ...new Set(some.map((each) => `${each.status} ${codeOf(each)}`)),
  ];
  const early = answers.filter(({ endedAt }) => endedAt <= end - SECOND);
  const late = answers.filter((each) => isLate(each, end));
  test.same(
    codesOf(early).filter((each) => each !== '200 null'),
    [],
    `${what}: too early`,
  );
  test.same(codesOf(late), ['401 api_key_expired'], `${what}: too late`);
  const others = codesOf(answers).filter((each) => !/^(200 null|401 api_key_expired)$/.test(each));
  test.same(others, [], what);
  const good = answers.filter(({ status }) => status === 200).map(({ endedAt }) => endedAt);
  return { sent: answers.length, workedMs: Math.max(0, ...good.map((at) => at - end)) };
}

/** Lets a key expire and the grace of a rotated key end, under load on both. */
async function ended(test: Test, isDeaf: boolean): Promise<ObservedUse[]> {
  const database = await testDatabase(test);
  const { db } = database;
  const service = await startServiceProcess(test, database);
  const rotated = await keyFor(database, ['prices:*']);
  const { key, expiresAt } = await createKey(db, {
    name: 'short',
    scopes: ['prices:*'],
    expiresAt: new Date(Date.now() + LIFE_MS),
  });
  const loadWith = (own: string) => openLoad(test, { ...service, key: own }, [ASK], PER_SECOND);
  const [short, old] = [loadWith(key), loadWith(rotated)];
  await until('the one that is rotated works', () => old.answers.length >= 20);
  test.ok(old.answers.every(({ status }) => status === 200));
  const replacement = await rotateKey(db, idOf(rotated), {
    graceMs: LIFE_MS,
    expiresAt: 'same-lifetime',
  });
  const next = loadWith(replacement.key);
  if (isDeaf) await endSessions(database);
  const grace = (await showKey(db, idOf(rotated))).expiresAt;
  const isOver = ({ answers }: typeof old, end: string | null): boolean =>
    answers.filter((each) => isLate(each, timeOf(end))).length >= PER_SECOND;
  await until('both are over', () => isOver(short, expiresAt) && isOver(old, grace));
  const [shortly, before, after] = (
    await Promise.all([short, old, next].map((load) => load.stop()))
  ).map((answers) => answers.filter((each) => !isDeaf || !isAway(each)));
  test.ok(
    after?.every(({ status }) => status === 200),
    'the new key works all the time',
  );
  return [
    validUntilItsEnd(test, 'an expiry', shortly ?? [], expiresAt),
    validUntilItsEnd(test, 'a grace', before ?? [], grace),
  ];
}

fault(
  'F32',
  'a key that is revoked, one that expires, and one that is rotated with a grace period, each ' +
    'under load',
  'after a revocation, the last 200 comes ≤ 1 s after the commit, ≤ 10 s if the sessions of ' +
    'the service were ended; expiry and grace period are exact to the second in both cases; the ' +
    'new key works from its commit on',
  async (t) => {
    const plain = await revoked(t, false);
    const deaf = await revoked(t, true);
    const ends = [...(await ended(t, false)), ...(await ended(t, true))];
    const lastGood = (at: number) => within(ends[at]?.workedMs ?? Number.NaN, SECOND);
    return {
      requests: [plain, deaf, ...ends].reduce((sum, { sent }) => sum + sent, 0),
      'last 200 after': within(plain.workedMs, 1_000),
      'with sessions ended': within(deaf.workedMs, 10_000),
      'after an expiry': lastGood(0),
      'after a grace period': lastGood(1),
      'after an expiry, with sessions ended': lastGood(2),
      'after a grace period, with sessions ended': lastGood(3),
    };
  },
);
