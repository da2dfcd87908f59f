import cluster from 'node:cluster';
import { pino } from 'pino';
import t from 'tap';
import { logStateChange, logWorkerStates, type StateChange } from '../../src/process/log.ts';

/** A log, and its lines. */
function log() {
  const lines: string[] = [];
  const logger = pino({}, { write: (line: string) => lines.push(JSON.parse(line).msg) });
  return { logger, lines };
}

const changeTo = (state: string, message: string | null): StateChange => ({
  topic: 'the database',
  state,
  level: 'error',
  message,
});

t.test('a state change that several workers report is one line, each time', async (t) => {
  const { logger, lines } = log();
  logWorkerStates(logger);
  for (let time = 0; time < 2; time += 1) {
    for (const state of ['lost', 'away', 'back']) {
      const line = state === 'lost' ? null : `it is ${state}`;
      for (let worker = 0; worker < 4; worker += 1)
        cluster.emit('message', null, changeTo(state, line));
    }
  }
  for (const other of [null, 'text', {}, { type: 'metrics' }]) cluster.emit('message', null, other);
  t.same(lines, ['it is away', 'it is back', 'it is away', 'it is back']);
});

t.test('a process without workers writes what it notices', async (t) => {
  const { logger, lines } = log();
  for (const state of ['away', 'back']) logStateChange(logger, changeTo(state, `it is ${state}`));
  t.same(lines, ['it is away', 'it is back']);
});
