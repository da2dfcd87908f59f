import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { BULK_MARKET, fill } from '../../support/database/bulk.ts';
import { testDatabase } from '../../support/database/database.ts';
import { type ConnectionAnswer, sharedNow } from '../../support/http/load-connection.ts';
import { type LoadThread, startLoadThread } from '../../support/http/load-thread.ts';
import { startServiceProcess } from '../../support/http/service-process.ts';
import { postText, RawConnection, until } from '../../support/http/sockets.ts';
import { within } from '../../support/process/figures.ts';
import {
  agentOf,
  codeOf,
  type HttpAnswer,
  type HttpRequest,
  quantile,
  send,
  unacceptable,
} from '../../support/process/load.ts';
import { fault } from '../../support/run/faults.ts';
import { byLength } from '../../support/run/length.ts';

/** The default limits of a service: it sheds load. */
const GATE = {
  RUNNING_MAX: '64',
  WAITING_MAX: '128',
  WAITING_MS_MAX: '500',
  PRICE_BOOK_BYTES: '0',
};

/** In the short form nothing depends on how fast the machine is. */
const PATIENCE = byLength<Record<string, string>>(
  {
    REQUEST_DEADLINE_MS: '120000',
    DATABASE_STATEMENT_TIMEOUT_MS: '120000',
    DATABASE_SILENCE_MS: '60000',
    WAITING_MS_MAX: '60000',
  },
  {},
);

const path = `/v3/prices/${BULK_MARKET.slug}`;
const SERIES = JSON.stringify({ options: { includeSeries: true } });
/** An ordinary request. Without a price book it reads the database. */
const ASK: HttpRequest = {
  path,
  body: JSON.stringify({
    filters: {
      codes: Array.from({ length: 5 }, (_, at) => `BULK-0000${at + 1}`),
      dateFrom: '2026-06-01',
    },
    options: { includeSeries: true },
  }),
};

const database = await testDatabase(t);
await fill(database, { prices: 60, points: byLength(600, 3_000) });

/** Answers a second over 16 lines, each of which asks again once it was answered; for so long. */
async function capacity(load: LoadThread, ms: number): Promise<number> {
  const begun = sharedNow();
  load.pace({ perSecond: Number.POSITIVE_INFINITY, lines: 16 });
  await pause(ms);
  const to = sharedNow();
  return Math.max(20, (goodOf(load.answers, { from: begun, to }).length * 1_000) / (to - begun));
}

/** The capacity as it is now; in the short form more than any machine has. */
const mostOf = async (load: LoadThread, ms: number): Promise<number> =>
  byLength(2_000, await capacity(load, byLength(100, ms)));

/** More than the service works on and lets wait. */
const LINES = 300;

/**
 * Times of the capacity that are asked for, by turns that are short: what the machine has left for
 * it halves and doubles within a minute. There is no rest between them; in the long form each load
 * comes to a minute.
 */
const TIMES = [1, 2, 4];
const ROUNDS = byLength(1, 6, 24);
const TURN_MS = byLength(1_500, 2_500);

/** A part of the time, at one pace. */
interface Stretch {
  readonly from: number;
  readonly to: number;
}

const lengthOf = (turns: readonly Stretch[]): number =>
  turns.reduce((sum, { from, to }) => sum + to - from, 0);

/** Asks for so many times what it can do at that time, round after round, up and down by turns. */
async function overdo(load: LoadThread): Promise<Map<number, Stretch[]>> {
  const stretches = new Map<number, Stretch[]>(TIMES.map((times) => [times, []]));
  for (let round = 0; round < ROUNDS; round += 1) {
    const most = await mostOf(load, 1_500);
    // A machine that gets slower all the time is so to each load.
    const inOrder = round % 2 === 0 ? [...stretches] : [...stretches].reverse();
    for (const [times, turns] of inOrder) {
      load.pace({ perSecond: most * times, lines: LINES, restMs: 5 });
      const from = sharedNow();
      await pause(TURN_MS);
      turns.push({ from, to: sharedNow() });
    }
  }
  return stretches;
}

/** The 200 that came in a stretch. */
const goodOf = (answers: readonly ConnectionAnswer[], { from, to }: Stretch): ConnectionAnswer[] =>
  answers.filter(({ status, endedAt }) => status === 200 && endedAt > from && endedAt <= to);

/** So much of the capacity leaves the service at rest; in the short form nothing is measured. */
const quiet = (most: number) => ({
  perSecond: byLength(Math.min(most / 2, 5), most / 2),
  lines: LINES,
});

/** Waits for enough answers due after a given time; the load continues. */
async function restful(
  load: LoadThread,
  most: number,
  from: number,
): Promise<readonly ConnectionAnswer[]> {
  const seen = load.answers.length;
  const enough = byLength(5, Math.round(most * 2.5));
  const due = (): readonly ConnectionAnswer[] =>
    load.answers.slice(seen).filter(({ endedAt, ms }) => endedAt - ms >= from);
  await until('enough are answered', () => due().length >= enough);
  return due();
}

/**
 * When answers were good and as fast again as they may be: the end of the first second of them
 * with such a p99, and of all of them where there is none.
 */
function asFastAgainAt(
  answers: readonly ConnectionAnswer[],
  perSecond: number,
  p99: number,
): number {
  const inOrder = answers.toSorted((one, other) => one.endedAt - other.endedAt);
  const second = Math.min(inOrder.length, Math.round(perSecond));
  for (let end = second; end <= inOrder.length; end += 1) {
    const seen = inOrder.slice(end - second, end);
    const areGood = seen.every(({ status }) => status === 200);
    if (areGood && quantile(seen, 0.99) <= p99) return seen.at(-1)?.endedAt ?? 0;
  }
  return inOrder.at(-1)?.endedAt ?? 0;
}

fault(
  'F45',
  'overload: 1 ×, 2 ×, 4 × the capacity, then half',
  'good answers ≥ 80 % of the maximum, their p99 ≤ 1 s, the rest 503 with Retry-After; as ' +
    'fast as before ≤ 5 s after the overload, and from 1 s after it a p99 ≤ 2 × that before',
  async (t) => {
    const service = await startServiceProcess(t, database, GATE);
    const load = startLoadThread(t, service, ASK);
    const most = await mostOf(load, 10_000);
    load.pace(quiet(most));
    const before = await restful(load, most, sharedNow());
    const clients = process.cpuUsage();
    const begun = sharedNow();
    const stretches = [...(await overdo(load)).values()];
    const { user, system } = process.cpuUsage(clients);
    const over = sharedNow();
    // The machine may be slower by now than it was; in the short form that is no matter.
    load.pace(quiet(most));
    const [after, later] = await Promise.all([
      restful(load, most, over),
      // Requests of the overload are still being answered.
      restful(load, most, over + byLength(0, 1_000)),
    ]);
    const areGood = () => load.answers.slice(-20).every(({ status }) => status === 200);
    await until('the last 20 requests are answered', areGood);
    const answers = await load.stop();
    t.same(unacceptable(answers), []);
    const refused = answers.filter(({ status }) => status !== 200);
    t.same([...new Set(refused.map(codeOf))], ['overloaded']);
    const good = stretches.map((turns) => turns.flatMap((turn) => goodOf(answers, turn)));
    const rates = stretches.map((turns, at) => ((good[at]?.length ?? 0) * 1_000) / lengthOf(turns));
    const share = Math.min(...rates) / Math.max(...rates);
    const again = asFastAgainAt(after, most / 2, 2 * quantile(before, 0.99));
    const latest = answers.reduce((most, { lateMs }) => Math.max(most, lateMs), 0);
    return {
      'capacity per second': Math.round(most),
      requests: answers.length,
      rejected: refused.length,
      'of a core for the clients': `${Math.round((user + system) / 10 / (over - begun))} %`,
      'good a second at 1, 2 and 4 ×': rates.map(Math.round).join(', '),
      'largest loss of good answers': within(100 * (1 - share), 20, '%'),
      'largest p99 of good answers': within(
        Math.max(...good.map((each) => quantile(each, 0.99))),
        1_000,
      ),
      'sent late by at most': `${Math.round(latest)} ms`,
      'as fast as before after': within(again - over, 5_000),
      'p99 at half before': `${quantile(before, 0.99).toFixed(1)} ms`,
      'p99 at half afterwards': within(quantile(later, 0.99), 2 * quantile(before, 0.99)),
    };
  },
);

fault(
  'F47',
  '256 MB, no price book, largest answers and slow readers at once',
  'the process survives; every answer is complete or rejected; ≤ 350 MB',
  async (t) => {
    const service = await startServiceProcess(t, database, {
      ...GATE,
      STALL_TIMEOUT_MS: '60000',
      ...PATIENCE,
      NODE_OPTIONS: '--max-old-space-size=256',
    });
    const first = await send(false, service, { path, body: SERIES });
    t.equal(first.status, 200);
    const slow = Array.from({ length: byLength(4, 32) }, () => new RawConnection(t, service.port));
    for (const { socket } of slow) {
      socket.pause();
      socket.write(postText(service, BULK_MARKET.slug, { options: { includeSeries: true } }));
    }
    const agent = agentOf(t, 64);
    const lengths = new Set<number>();
    const answers: HttpAnswer[] = [];
    let memory = 0;
    const client = async (): Promise<void> => {
      for (let turn = 0; turn < byLength(1, 2); turn += 1) {
        const answer = await send(agent, service, { path, body: SERIES });
        if (answer.status === 200) lengths.add(answer.text.length);
        answers.push({ ...answer, text: answer.status === 200 ? '' : answer.text });
        memory = Math.max(memory, await service.memory());
      }
    };
    await Promise.all(Array.from({ length: byLength(12, 32) }, client));
    t.same(
      [...lengths].filter((length) => length !== first.text.length),
      [],
      'all are whole',
    );
    t.same(unacceptable(answers), [], 'none breaks off');
    for (const { socket } of slow) socket.destroy();
    const again = (): Promise<HttpAnswer> => send(false, service, ASK);
    await until('the service answers', async () => (await again()).status === 200);
    t.equal(service.running.child.exitCode, null);
    return {
      answers: answers.length,
      'MB each': Number((first.text.length / 2 ** 20).toFixed(1)),
      'slow readers': slow.length,
      rejected: answers.filter(({ status }) => status >= 500).length,
      memory: within(memory, 350, 'MB'),
    };
  },
);
