import { globSync, readFileSync } from 'node:fs';
import t from 'tap';
import { seededDatabase } from '../support/database/database.ts';
import { ROOT } from '../support/docs/blocks.ts';
import { serviceOn } from '../support/http/service.ts';
import { until } from '../support/http/sockets.ts';

const FOLDER = `${ROOT}docs/examples/bruno/`;

/** The blocks of a file of Bruno, by name. */
function blocksOf(file: string): Readonly<Record<string, string>> {
  const text = readFileSync(`${FOLDER}${file}`, 'utf8');
  const blocks = [...text.matchAll(/^([\w:]+) \{\n(.*?)^\}\n/gms)];
  if (blocks.map(([whole]) => whole).join('\n') !== text) throw new Error(`${file}: not read`);
  return Object.fromEntries(blocks.map(([, name, body]) => [name, body]));
}

/** The pairs of a block of `name: value` lines. */
const pairsOf = (block = ''): readonly (readonly [string, string])[] =>
  [...block.matchAll(/^ {2}([\w.-]+): (.*)$/gm)].map(([, name = '', value = '']) => [name, value]);

const lineOf = (block: string | undefined, name: string): string | undefined =>
  pairsOf(block).find(([each]) => each === name)?.[1];

t.test('every request of the Bruno collection is answered, with data', async (t) => {
  const service = await serviceOn(t, await seededDatabase(t));
  await service.app.ready();
  await until('the service is ready', async () => {
    return (await service.app.inject('/ready')).statusCode === 200;
  });
  const files = globSync('*.bru', { cwd: FOLDER }).filter((file) => file !== 'collection.bru');
  const vars = blocksOf('environments/local.bru')['vars'];
  t.equal(lineOf(vars, 'address'), 'http://127.0.0.1:3000');
  t.equal(lineOf(vars, 'key'), '{{process.env.COMMODITY_PRICES_KEY}}');
  t.same(pairsOf(blocksOf('collection.bru')['headers']), [['x-api-key', '{{key}}']]);
  const order = new Set<string>();
  for (const file of files) {
    const blocks = blocksOf(file);
    order.add(lineOf(blocks['meta'], 'seq') ?? '');
    const [method, request] =
      Object.entries(blocks).find(([name]) => /^(get|post)$/.test(name)) ?? [];
    const url = lineOf(request, 'url')?.replace(/^\{\{address\}\}/, '') ?? '';
    t.match(url, /^\//, file);
    const { searchParams } = new URL(url, 'http://service');
    t.same([...searchParams], pairsOf(blocks['params:query']), `${file}: both lists of parameters`);
    const body = blocks['body:json'];
    t.equal(lineOf(request, 'body'), body === undefined ? 'none' : 'json', file);
    const { status, text, json } = await service.request({
      method: method === 'post' ? 'POST' : 'GET',
      url,
      ...(body !== undefined && { payload: JSON.parse(body) }),
    });
    t.equal(
      `eq ${status}`,
      lineOf(blocks['assert'], 'res.status'),
      `${file}: ${text.slice(0, 200)}`,
    );
    if (json?.data) t.ok(Object.keys(json.data).length > 0, `${file} has data`);
    t.notMatch(text, /unmatched_value/, file);
  }
  t.ok(files.length > 10);
  t.equal(order.size, files.length, 'each has a place of its own');
});
