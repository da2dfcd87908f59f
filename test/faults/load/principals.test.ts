import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { createKey } from '../../../src/auth/keys/keys.ts';
import { ALL_MARKETS, scopeOf } from '../../../src/catalog/scopes.ts';
import type { KeyLimits } from '../../../src/limits/limits.ts';
import { BULK_MARKET, fill } from '../../support/database/bulk.ts';
import { testDatabase } from '../../support/database/database.ts';
import { type LoadThread, startLoadThread } from '../../support/http/load-thread.ts';
import { type ServiceProcess, startServiceProcess } from '../../support/http/service-process.ts';
import { postText, until } from '../../support/http/sockets.ts';
import { within } from '../../support/process/figures.ts';
import { countsOf, quantile, send, type Target } from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';

type Test = typeof t;

const database = await testDatabase(t);
await fill(database, { prices: 60, points: byLength(600, 3_000) });

/** The default limits of a service. */
const LIMITS = {
  RATE_PER_MINUTE: '600',
  RATE_BURST: '60',
  CONCURRENT_MAX: '10',
  RUNNING_MAX: '64',
  WAITING_MAX: '128',
  WAITING_MS_MAX: '500',
  PRICE_BOOK_BYTES: '0',
};
const BODY_MS = byLength(1_000, 15_000);
const BODY_TIMES = { HEADERS_TIMEOUT_MS: String(BODY_MS / 2), REQUEST_TIMEOUT_MS: String(BODY_MS) };

/** The attack lasts this long. */
const ATTACK_MS = byLength(2_500, 40_000);

const path = `/v3/prices/${BULK_MARKET.slug}`;
const SERIES = { options: { includeSeries: true } };
const ASK = { path, body: '{"filters":{"codes":["BULK-00001","BULK-00002"]}}' };

const keyWith = async (
  scopes: readonly string[],
  limits: KeyLimits | null = null,
): Promise<string> => {
  const expiresAt = new Date(Date.now() + 24 * 3_600_000);
  return (await createKey(database.db, { name: 'test', scopes, expiresAt, limits })).key;
};

/** A key whose rate and concurrency have no limit. */
const UNLIMITED: KeyLimits = { perMinute: 0, burst: 1, concurrent: 0 };

/** The requests of another key, one each 40 ms. */
async function victimOf(test: Test, { port }: ServiceProcess): Promise<LoadThread> {
  const key = await keyWith([ALL_MARKETS], UNLIMITED);
  const load = startLoadThread(test, { port, key }, ASK);
  load.pace({ perSecond: 25, lines: 100 });
  await until('the other key is answered', () => load.answers.length >= 10);
  return load;
}

/** Asserts that the other key was answered during an attack, and returns the figures. */
async function duringAttack(load: LoadThread, attack: () => Promise<void>) {
  const seen = load.answers.length;
  await attack();
  const answers = load.answers.slice(seen);
  await load.stop();
  const failed = answers.filter(({ status }) => status !== 200);
  return {
    'requests of another key': answers.length,
    'of them failed': within((100 * failed.length) / answers.length, 1, '%'),
    'their p99': within(quantile(answers, 0.99), 1_000),
  };
}

fault(
  'F62',
  '400 connections of one key whose requests are all refused: 403, 429 by rate, by concurrency',
  'another key is answered in ≥ 99 % of its requests, with a p99 ≤ 1 s; the flood of a key with ' +
    'limits gets no 5xx',
  async (t) => {
    const service = await startServiceProcess(t, database, LIMITS);
    const scopes = [scopeOf('nickel')];
    // Without limits, one principal has its part of the gate.
    const floods = [
      ['by rate', await keyWith(scopes), ['403', '429']],
      [
        'by concurrency',
        await keyWith([ALL_MARKETS], { ...UNLIMITED, concurrent: 1 }),
        ['200', '429'],
      ],
      ['by scope', await keyWith(scopes, UNLIMITED), ['403', '503']],
    ] as const;
    let figures = {};
    for (const [kind, key, allowed] of floods) {
      const target: Target = { port: service.port, key };
      const flood = startLoadThread(t, target, ASK);
      const victim = await victimOf(t, service);
      flood.pace({ perSecond: Number.POSITIVE_INFINITY, lines: 400, restMs: 5 });
      await until('the flood has begun', () => flood.answers.length > 400);
      const begun = flood.answers.length;
      const seen = await duringAttack(victim, () => pause(ATTACK_MS / 3));
      const refused = (await flood.stop()).slice(begun);
      const statuses = Object.keys(countsOf(refused));
      t.same(
        statuses.filter((status) => !allowed.some((each) => each === status)),
        [],
        kind,
      );
      const named = Object.entries(seen).map(([name, value]) => [`${name}, ${kind}`, value]);
      figures = { ...figures, [`refused ${kind}`]: refused.length, ...Object.fromEntries(named) };
    }
    return figures;
  },
);

/** Keeps connections of several keys open, each anew when it is closed. */
function attackers(
  test: Test,
  keys: readonly string[],
  open: (key: string) => ReturnType<typeof connect>,
) {
  let isOver = false;
  const longest = { ms: 0, closed: 0 };
  const sockets = new Set<ReturnType<typeof connect>>();
  const attack = (key: string): void => {
    if (isOver) return;
    const begun = performance.now();
    const socket = open(key);
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => {
      sockets.delete(socket);
      if (!isOver) longest.ms = Math.max(longest.ms, performance.now() - begun);
      longest.closed += 1;
      attack(key);
    });
  };
  const stop = (): void => {
    isOver = true;
    for (const socket of sockets) socket.destroy();
  };
  test.teardown(stop);
  for (const key of keys) for (let at = 0; at < 10; at += 1) attack(key);
  return { longest, stop };
}

const sevenKeys = (): Promise<string[]> =>
  Promise.all(
    Array.from({ length: 7 }, () => keyWith([ALL_MARKETS], { ...UNLIMITED, concurrent: 10 })),
  );

fault(
  'F63',
  'bodies that never arrive: 7 keys × 10 connections, each anew when it is closed',
  'another key is answered in ≥ 99 % of its requests, with a p99 ≤ 1 s; each connection is ' +
    'closed within its timeout plus 1 s',
  async (t) => {
    const service = await startServiceProcess(t, database, { ...LIMITS, ...BODY_TIMES });
    const victim = await victimOf(t, service);
    const attack = attackers(t, await sevenKeys(), (key) => {
      const socket = connect(service.port, '127.0.0.1');
      const text = postText({ key }, BULK_MARKET.slug, SERIES);
      socket.write(text.slice(0, -1));
      socket.resume();
      return socket;
    });
    const figures = await duringAttack(victim, async () => {
      await pause(ATTACK_MS);
      await until('each was closed', () => attack.longest.closed >= 70);
    });
    attack.stop();
    return {
      connections: 70,
      closed: attack.longest.closed,
      'longest open': within(attack.longest.ms, BODY_MS + 1_500),
      ...figures,
    };
  },
);

/** Reads 32 KB a second. */
const READ_BYTES_PER_MS = 32;

fault(
  'F63b',
  'answers of 20 MB that are read at 32 KB a second, or not at all: 7 keys × 10 connections',
  'another key is answered in ≥ 99 % of its requests, with a p99 ≤ 1 s; ≤ 450 MB',
  async (t) => {
    const service = await startServiceProcess(t, database, LIMITS);
    const whole = { path, body: JSON.stringify(SERIES) };
    t.equal((await send(false, service, whole)).status, 200);
    const victim = await victimOf(t, service);
    let opened = 0;
    const attack = attackers(t, await sevenKeys(), (key) => {
      const socket = connect(service.port, '127.0.0.1');
      socket.write(postText({ key }, BULK_MARKET.slug, SERIES));
      opened += 1;
      const isSlow = opened % 2 === 0;
      socket.on('data', (bytes) => {
        socket.pause();
        if (isSlow) setTimeout(() => socket.resume(), bytes.length / READ_BYTES_PER_MS).unref();
      });
      return socket;
    });
    const figures = await duringAttack(victim, () => pause(ATTACK_MS));
    attack.stop();
    return {
      connections: opened,
      ...figures,
      memory: within(await service.memory(), 450, 'MB'),
    };
  },
);

fault(
  'F63c',
  'whole answers in a closed loop, read at full speed: 12 keys × 10 connections',
  'another key is answered in ≥ 99 % of its requests, with a p99 ≤ 1 s',
  async (t) => {
    const service = await startServiceProcess(t, database, LIMITS);
    const keys = await Promise.all(
      Array.from({ length: 12 }, () => keyWith([ALL_MARKETS], { ...UNLIMITED, concurrent: 10 })),
    );
    const victim = await victimOf(t, service);
    const whole = { path, body: JSON.stringify(SERIES) };
    const readers = keys.map((key) => startLoadThread(t, { port: service.port, key }, whole));
    for (const load of readers) load.pace({ perSecond: Number.POSITIVE_INFINITY, lines: 10 });
    await until('the readers read', () => readers.every(({ answers }) => answers.length > 0));
    const figures = await duringAttack(victim, () => pause(ATTACK_MS));
    const answers = readers.flatMap((load) => load.answers);
    return { 'whole answers': countsOf(answers)['200'] ?? 0, ...figures };
  },
);
