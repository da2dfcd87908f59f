import { readFile } from 'node:fs/promises';
import t from 'tap';
import { configOf } from '../../src/config/config.ts';
import { changeQuery, OPERATIONS } from '../../src/contract/schemas/changes.ts';
import { problemBody } from '../../src/contract/schemas/problem.ts';
import { startAgain } from '../../src/errors.ts';
import { faultOf } from '../support/http/conformity.ts';

const page = await readFile(new URL('../../docs/changes.md', import.meta.url), 'utf8');

/** The first words in backticks of the rows of a table that begins with these cells. */
const wordsUnder = (heading: string): string[] => {
  const [, rows = ''] = page.split(`\n${heading}\n`);
  const [table = ''] = rows.split('\n\n');
  return [...table.matchAll(/^\| `([^`]+)`/gm)].map(([, word = '']) => word);
};

t.test('the page shows an answer as the service would send it', async (t) => {
  const [, body = ''] = /```json\n(.*?)```/s.exec(page) ?? [];
  const headers = { 'content-type': 'application/json', 'x-request-id': 'x' };
  t.equal(faultOf('GET', '/v3/changes', { statusCode: 200, headers, body }), null);
});

t.test('the page shows a rejected position as the service would send it', async (t) => {
  const [, body = ''] = /```json\n(\{"type".*?)```/s.exec(page) ?? [];
  const headers = { 'content-type': 'application/problem+json', 'x-request-id': 'x' };
  t.equal(faultOf('GET', '/v3/changes', { statusCode: 400, headers, body }), null);
  const { type, title, status, code, detail, errors } = JSON.parse(body);
  const problem = startAgain('unknown_revision', '/after', detail);
  const shown = JSON.parse(problemBody(problem, '/v3/changes', 'x', 'address'));
  t.match(shown, { type, title, status, code, detail, errors });
});

t.test('the page lists every member of the query, and every operation', async (t) => {
  const limits = { limit: 1, limitMax: 1, waitMaxSeconds: 1, codesMax: 1, itemLengthMax: 1 };
  t.same(wordsUnder('| Query | |'), Object.keys(changeQuery(limits).properties));
  const operations = wordsUnder('| `operation` | `date` | `before` | `after` |');
  t.same([...new Set(operations)], [...OPERATIONS]);
});

t.test('the page has the current limits', async (t) => {
  const config = configOf({});
  t.match(page, `${config.CHANGES_LIMIT} without it, at most ${config.CHANGES_LIMIT_MAX} |`);
  t.match(page, `Seconds, at most ${config.CHANGES_WAIT_MAX_SECONDS}, to wait`);
  t.equal(config.CHANGES_WAITING_MAX, 2, 'two, in words');
});
