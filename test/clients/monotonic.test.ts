import t from 'tap';
import { createClient } from '../../clients/typescript/client.js';
import { python } from '../support/process/python.ts';
import { json, type Responder, refused, SOON, scriptedServer } from './scripted-server.ts';

/** An answer of a revision. */
const of = (revision: string, headers: Record<string, string> = {}): Responder =>
  json(
    { $metadata: { market: 'nickel', revision, warnings: [], nextSeq: 'abcd.7' }, data: [] },
    { 'x-data-revision': revision, 'x-next-seq': 'abcd.7', ...headers },
  );

/** Answers whose revision goes back and forth, then is of another history. */
const ANSWERS: readonly Responder[] = [
  of('abcd.9'),
  of('abcd.10'),
  of('abcd.9'),
  refused(503, 'revision_not_here', SOON),
  of('abcd.11'),
  of('wxyz.2', { 'x-min-revision-unknown': 'abcd.11' }),
  of('not a revision'),
  of('wxyz.3'),
];

/** The header of each request: none before the first answer, then the newest revision so far. */
const BOUNDS = [
  undefined,
  'abcd.9',
  'abcd.10',
  'abcd.10',
  'abcd.10',
  'abcd.11',
  'wxyz.2',
  'wxyz.2',
];

/** A server that records the bound of each request. */
async function serving(test: Pick<typeof t, 'teardown'>) {
  const bounds: unknown[] = [];
  const { url } = await scriptedServer(
    test,
    ANSWERS.map(
      (answer): Responder =>
        (reply, request) => {
          bounds.push(request.headers['x-min-revision']);
          answer(reply, request);
        },
    ),
  );
  return { url, bounds };
}

const CALLS = ANSWERS.length - 1;

/** A program of Python that asks one address, then another. */
const program = (url: string, other: string, option: string): string => `
import commodity_prices as cp
for call in range(${CALLS}):
    client = cp.Client(${JSON.stringify(url)}, "key"${option})
    client.prices("nickel") if call % 2 == 0 else client.changes()
cp.Client(${JSON.stringify(other)}, "key"${option}).prices("nickel")
`;

t.test('a client of TypeScript asks for no older data than it has', async (t) => {
  const { url, bounds } = await serving(t);
  const client = createClient({ url, key: 'key', onWarning: () => {} });
  for (let call = 0; call < CALLS; call += 1) {
    await (call % 2 === 0 ? client.prices('nickel') : client.changes());
  }
  t.same(bounds, BOUNDS);
  const other = await serving(t);
  await createClient({ url: other.url, key: 'key' }).prices('nickel');
  t.same(other.bounds, [undefined], 'another address has other revisions');
});

t.test('a program of Python asks for no older data than it has', async (t) => {
  const { url, bounds } = await serving(t);
  const other = await serving(t);
  const { code, stderr } = await python(program(url, other.url, ''));
  t.equal(code, 0, stderr);
  t.same(bounds, BOUNDS);
  t.same(other.bounds, [undefined], 'another address has other revisions');
});

t.test('the bound can be switched off', async (t) => {
  const none = ANSWERS.map(() => undefined);
  const { url, bounds } = await serving(t);
  const client = createClient({ url, key: 'key', monotonic: false, onWarning: () => {} });
  for (let call = 0; call < CALLS; call += 1) await client.changes();
  t.same(bounds, none);
  const other = await serving(t);
  const { code, stderr } = await python(program(other.url, other.url, ', monotonic=False'));
  t.equal(code, 0, stderr);
  t.same(other.bounds, [...none, undefined]);
});
