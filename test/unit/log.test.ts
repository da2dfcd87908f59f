import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { loggerOf } from '../../src/plugins/log.ts';
import { Together } from '../../src/server/together.ts';
import { runScript } from '../support/running.ts';

/** A log whose writes are kept apart. */
function written() {
  const writes: string[] = [];
  const log = loggerOf('info', new Together({ write: (text) => writes.push(text) }));
  return { writes, log };
}

const messages = (text: string): unknown[] =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).msg);

t.test('the lines of one turn are one write, in their order', async (t) => {
  const { writes, log } = written();
  for (const name of ['a', 'b', 'c']) log.info(name);
  t.same(writes, []);
  await turn();
  t.equal(writes.length, 1);
  t.same(messages(writes[0] ?? ''), ['a', 'b', 'c']);
  log.info('d');
  await turn();
  t.same(messages(writes[1] ?? ''), ['d']);
});

t.test('no write of several lines is longer than what a pipe takes in one piece', async (t) => {
  const { writes, log } = written();
  const names = Array.from({ length: 100 }, (_, at) => `${at} ${'é'.repeat(20 * (at % 10))}`);
  const long = 'é'.repeat(5_000);
  for (const name of [...names, long, 'last']) log.info(name);
  await turn();
  t.same(messages(writes.join('')), [...names, long, 'last']);
  const broad = writes.filter((text) => Buffer.byteLength(text) > 4_096);
  t.same(broad.map(messages), [[long]]);
  t.ok(writes.length < 20);
});

t.test('a fatal line is written at once, with what came before', async (t) => {
  const { writes, log } = written();
  log.info('before');
  log.fatal('the end');
  t.same(messages(writes.join('')), ['before', 'the end']);
});

const from = (path: string): string => JSON.stringify(new URL(path, import.meta.url));
const LOG = from('../../src/plugins/log.ts');
const TOGETHER = from('../../src/server/together.ts');

for (const [how, end] of [
  ['exits', 'process.exit(3)'],
  ['fails', "throw new Error('broken')"],
] as const) {
  t.test(`a process that ${how} has written its last line`, async (t) => {
    const { stderr } = await runScript(
      t,
      `import { loggerOf } from ${LOG};
      import { Together } from ${TOGETHER};
      loggerOf('info', new Together(process.stderr)).info('the last line');
      ${end};`,
    );
    t.match(stderr, '"msg":"the last line"');
  });
}
