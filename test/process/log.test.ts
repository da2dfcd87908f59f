import { closeSync, openSync } from 'node:fs';
import t from 'tap';
import { RefusalLines } from '../../src/http/hooks/log-lines.ts';
import { loggerOf } from '../../src/process/log.ts';
import { pipe } from '../support/http/pipe.ts';
import { until } from '../support/http/sockets.ts';
import { runScript, startScript } from '../support/process/programs.ts';

interface Line {
  readonly msg: string;
  readonly at?: number;
  readonly count?: number;
}

const linesOf = (text: string): Line[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

const LOG = JSON.stringify(new URL('../../src/process/log.ts', import.meta.url));

/** Opens a log as the service does. */
const open = (bytesMax: number): string => `import { openLog } from ${LOG};
  import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises';
  process.stderr.on('error', () => {});
  const log = openLog({ level: 'info', bytesMax: ${bytesMax} });`;
const OPEN = open(65_536);

for (const [how, end] of [
  ['exits', 'process.exit(3)'],
  ['fails', "throw new Error('broken')"],
] as const) {
  t.test(`a process that ${how} has written its last lines`, async (t) => {
    const { stderr } = await runScript(
      t,
      `${OPEN}
      const { logger } = log;
      for (let at = 0; at < 40; at += 1) logger.info({ at, text: 'é'.repeat(99) }, 'a line');
      ${end};`,
    );
    const lines = linesOf(
      stderr
        .split('\n')
        .filter((each) => each.startsWith('{'))
        .join('\n'),
    );
    t.same(
      lines.map(({ at }) => at).toSorted((a = 0, b = 0) => a - b),
      Array.from({ length: 40 }, (_, at) => at),
    );
  });
}

t.test('a line appears within a second, without more lines', async (t) => {
  const running = startScript(t, `${OPEN} log.logger.info('alone'); setTimeout(() => {}, 60_000);`);
  await running.until('stderr', '"msg":"alone"');
});

t.test('lines of several processes on one pipe are not parted', async (t) => {
  const { writeEnd, read } = await pipe(t);
  const script = `${open(4_194_304)}
    for (let at = 0; at < 2_000; at += 1) {
      log.logger.info({ at, text: 'x'.repeat(at % 700) }, 'a line');
      if (at % 20 === 0) await turn();
    }
    await pause(60_000);`;
  const all = [1, 2, 3].map(() => startScript(t, script, writeEnd));
  closeSync(writeEnd);
  let text = '';
  await until('all lines have come', async () => {
    text += read();
    return text.split('"at":1999').length === 4;
  });
  for (const { child } of all) child.kill('SIGKILL');
  const lines = linesOf(text);
  t.equal(lines.filter(({ msg }) => msg === 'a line').length, 6_000);
});

/** Logs 1,000 lines of 1 KB over as many turns, and a word by another way; then ends. */
const BUSY = `${OPEN}
  import { spawnSync } from 'node:child_process';
  // A process that inherits a pipe makes it block for all that share it.
  spawnSync('true', { stdio: ['ignore', 'ignore', 'inherit'] });
  console.error('a word');
  process.stderr.write('another word');
  for (let at = 0; at < 1_000; at += 1) {
    log.logger.info({ at, text: 'x'.repeat(1_000) }, 'a line');
    await turn();
  }
  await pause(200);
  console.log(log.linesLost);`;

t.test(
  'a log that cannot be written neither ends nor delays a process, nor fills it',
  async (t) => {
    const full = openSync('/dev/full', 'w');
    const closed = await pipe(t);
    closed.closeReader();
    const stopped = await pipe(t);
    for (const [name, fd] of Object.entries({
      'a full disk': full,
      'a reader that has closed': closed.writeEnd,
      'a reader that stands still': stopped.writeEnd,
    })) {
      const running = startScript(t, `${BUSY} process.exit(0);`, fd);
      closeSync(fd);
      const lost = Number(await running.until('stdout', /^\d+\n/));
      // Lines in the buffers of the process and of the pipe are not lost yet.
      const held = (65_536 * 2) / 1_000;
      t.ok(lost >= 1_000 - held && lost < 1_000, `${name}: lines are counted`);
      // The end may wait for a reader that stands still.
      if (fd === stopped.writeEnd) stopped.closeReader();
      t.equal(await running.ended, 0, name);
    }
  },
);

t.test('a process whose first line cannot be written ends all the same', async (t) => {
  const full = openSync('/dev/full', 'w');
  const closed = await pipe(t);
  closed.closeReader();
  for (const fd of [full, closed.writeEnd]) {
    const { code } = await runScript(t, `${OPEN} log.logger.info('x'); process.exit(4);`, fd);
    closeSync(fd);
    t.equal(code, 4);
  }
});

t.test('once a log can be written again, a line says how many were dropped', async (t) => {
  const { writeEnd, read } = await pipe(t);
  const running = startScript(t, `${BUSY} await pause(60_000);`, writeEnd);
  closeSync(writeEnd);
  const lost = Number(await running.until('stdout', /^\d+\n/));
  let text = '';
  await until('the dropped lines are reported', async () => {
    text += read();
    return text.includes('log lines were dropped');
  });
  const lines = linesOf(text.slice(text.indexOf('{')));
  t.equal(lines.filter(({ msg }) => msg === 'a line').length, 1_000 - lost);
  t.match(lines.at(-1), { msg: /could not be written/, count: lost });
});

t.test(
  'refusals have one log line a minute for each client and code, with their count',
  async (t) => {
    const lines: Record<string, unknown>[] = [];
    const log = loggerOf('info', { write: (line) => lines.push(JSON.parse(line)) });
    let nowMs = 0;
    const refusals = new RefusalLines(log, () => nowMs);
    const minute = (): void => {
      nowMs += 60_000;
      refusals.writeDue();
    };
    const refused = { level: 'info', status: 403, code: 'insufficient_scope' } as const;
    const admitted = (count: number, kind: object = {}): number =>
      Array.from({ length: count }, () =>
        refusals.admits({ ...refused, who: { key: 'one' }, ...kind }),
      ).filter(Boolean).length;
    t.equal(admitted(10), 1);
    t.equal(admitted(1, { who: { key: 'two' } }), 1, 'another client');
    t.equal(admitted(2, { code: 'rate_limited', status: 429 }), 1, 'another code');
    t.same(lines, []);
    nowMs = 59_999;
    refusals.writeDue();
    t.same(lines, [], 'the minute is not over');
    nowMs = 0;
    minute();
    t.equal(lines.length, 2);
    t.match(lines[0], {
      level: 30,
      msg: 'requests refused',
      status: 403,
      code: 'insufficient_scope',
      key: 'one',
      count: 9,
    });
    t.equal(admitted(3), 0, 'the count was the line of this minute');
    t.equal(admitted(1, { who: { key: 'two' } }), 1, 'nothing was counted, so this is the first');
    minute();
    t.equal(lines.length, 3);
    t.match(lines[2], { key: 'one', count: 3 });
    t.equal(admitted(2), 0);
    refusals.close();
    t.match(lines[3], { key: 'one', count: 2 }, 'a stop loses no count');
    t.equal(lines.length, 4);
  },
);

t.test('log lines of refusals are bounded, however many networks ask', async (t) => {
  const lines: Record<string, unknown>[] = [];
  const log = loggerOf('info', { write: (line) => lines.push(JSON.parse(line)) });
  const refusals = new RefusalLines(log);
  const refused = { level: 'info', status: 401, code: 'invalid_api_key' } as const;
  const networks = Array.from({ length: 5_000 }, (_, at) => ({ network: `2001:db8:0:${at}::/64` }));
  const own = networks.filter((who) => refusals.admits({ ...refused, who }));
  t.equal(own.length, 1_001, 'a thousand have an own line, and one line opens that of the others');
  refusals.close();
  t.equal(lines.length, 1);
  t.match(lines[0], { code: 'invalid_api_key', count: 3_999 });
  t.notOk('network' in (lines[0] ?? {}));
});
