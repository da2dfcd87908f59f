import t from 'tap';
import { MARKETS } from '../../src/catalog/markets.ts';
import type { Reply } from '../support/http/service.ts';
import { get, page, published } from '../support/prices/feed-pages.ts';

const SLUGS = MARKETS.map(({ slug }) => slug).join(', ');

/** The status of a refusal, its code unless it is validation_failed, its places and their codes. */
const refusal = ({ status, json }: Reply): unknown[] => [
  status,
  ...(json.code === 'validation_failed' ? [] : [json.code]),
  ...json.errors.map((each: { pointer: string; code: string }) => `${each.pointer} ${each.code}`),
];

const UNKNOWN = [400, 'unknown_revision', '?after unknown_revision'];

t.test('a query that breaks a rule is refused with all that is wrong', async (t) => {
  const { service, database } = await published(t, 16, 3);
  const { rows } = await database.pool.query('select epoch from service');
  const { next } = await page(service);
  const [, newest = ''] = next.split('.');
  const malformed = ['', '5', 'abc', `${rows[0].epoch}.01`, `${rows[0].epoch}.-1`, `${next}.1`];
  for (const after of [...malformed, `${rows[0].epoch}.${'9'.repeat(19)}`, '%00', "a'b.1"]) {
    t.same(refusal(await get(service, { after })), [400, '?after invalid_format'], after);
  }
  const other = await get(service, { after: `zzzzzz.${newest}` });
  t.same(refusal(other), UNKNOWN, 'another epoch');
  t.match(other.json.errors[0].detail, 'another epoch');
  t.equal(other.json.detail, other.json.errors[0].detail);
  const ahead = await get(service, { after: `${rows[0].epoch}.${Number(newest) + 1}` });
  t.same(refusal(ahead), UNKNOWN, 'beyond the newest');
  t.match(ahead.json.errors[0].detail, next);
  const cases: [query: string, ...places: string[]][] = [
    ['limit=0', '?limit out_of_range'],
    ['limit=5001', '?limit out_of_range'],
    ['limit=ten', '?limit wrong_type'],
    ['limit=1.5', '?limit wrong_type'],
    ['limit=', '?limit wrong_type'],
    ['limit=1&limit=2', '?limit too_many_items'],
    ['wait=26', '?wait out_of_range'],
    ['wait=-1', '?wait out_of_range'],
    ['wait=25s', '?wait wrong_type'],
    ['market=gold', '?market/0 out_of_range'],
    ['market=Nickel', '?market/0 out_of_range'],
    ['market=nickel&market=', '?market/1 out_of_range'],
    [`after=${next}&after=${next}`, '?after too_many_items'],
    ['after=%zz', '?after invalid_format'],
    ['after=zzzzzz.1&limit=0', '?limit out_of_range'],
    ['sinc=5', '?sinc unknown_field'],
    ['markets=nickel', '?markets unknown_field'],
    ['afer=1&wait=99&limit=x', '?afer unknown_field', '?limit wrong_type', '?wait out_of_range'],
    ['__proto__=1', '?__proto__ unknown_field'],
  ];
  for (const [query, ...places] of cases) {
    const answer = await service.request({ method: 'GET', url: `/v3/changes?${query}` });
    const [status, ...found] = refusal(answer);
    t.same([status, ...found.toSorted()], [400, ...places], query);
    t.equal(answer.headers['cache-control'], 'no-store');
  }
  const near = await service.request({ method: 'GET', url: '/v3/changes?markets=nickel' });
  t.match(near.json, {
    detail: 'One rule is broken; errors names the place',
    errors: [{ detail: 'There is no parameter markets; did you mean market?' }],
  });
  const detailOf = async (query: string): Promise<string> =>
    (await service.request({ method: 'GET', url: `/v3/changes?${query}` })).json.errors[0].detail;
  t.equal(
    await detailOf('market=nickel&market=aluminum'),
    'There is no market aluminum; did you mean aluminium?',
  );
  const often = Array.from({ length: MARKETS.length + 1 }, () => 'market=nickel').join('&');
  t.notMatch(await detailOf(often), 'did you mean', 'a list that is too long names no item');
  t.equal(await detailOf('market=gold'), `Must be one of ${SLUGS}`);
  t.equal(await detailOf('limit=ten'), 'Must be an integer');
  t.equal(await detailOf('limit=1&limit=2'), 'Give limit once');
});

t.test('an instant, a code or a kind that breaks a rule is refused with its place', async (t) => {
  const { service } = await published(t, 17, 1);
  const cases: [query: string, ...places: string[]][] = [
    ['since=5', '?since invalid_format'],
    ['since=', '?since invalid_format'],
    ['since=2026-03-05', '?since invalid_format'],
    ['since=2026-03-05T18:00:00', '?since invalid_format'],
    ['since=2026-03-05T18:00:00+01:00', '?since invalid_format'],
    ['since=2026-02-30T18:00:00Z', '?since invalid_format'],
    ['since=2026-03-05T25:00:00Z', '?since invalid_format'],
    [`since=2026-03-05T18:00:00.${'0'.repeat(64)}Z`, '?since too_long'],
    ['since=2199-03-05T18:00:00Z', '?since out_of_range'],
    ['since=9999-12-31T23:59:59Z', '?since out_of_range'],
    ['since=2026-03-05T18:00:00Z&since=2026-03-05T18:00:00Z', '?since too_many_items'],
    [`since=2026-03-05T18:00:00Z&after=abcd.1`, '?since unknown_field'],
    ['since=2026-03-05T18:00:00Z&after=latest', '?since unknown_field'],
    ['since=now&limit=0', '?limit out_of_range', '?since invalid_format'],
    ['operations=corrected&operations=deleted', '?operations/1 out_of_range'],
    ['operations=Corrected', '?operations/0 out_of_range'],
    ['operations=', '?operations/0 out_of_range'],
    ['operations=corrected,withdrawn', '?operations/0 out_of_range'],
    ['operation=corrected', '?operation unknown_field'],
    [
      Array.from({ length: 6 }, () => 'operations=corrected').join('&'),
      '?operations too_many_items',
    ],
    ['codes=', '?codes/0 invalid_format'],
    ['codes=%00', '?codes/0 invalid_characters'],
    [`codes=${'x'.repeat(129)}`, '?codes/0 too_long'],
    [Array.from({ length: 501 }, () => 'codes=a').join('&'), '?codes too_many_items'],
    ['code=CP-NI-0001', '?code unknown_field'],
  ];
  for (const [query, ...places] of cases) {
    const answer = await service.request({ method: 'GET', url: `/v3/changes?${query}` });
    const [status, ...found] = refusal(answer);
    t.same([status, ...found.toSorted()], [400, ...places], query.slice(0, 80));
  }
  const future = await get(service, { since: '2199-03-05T18:00:00Z' });
  t.equal(future.json.errors[0].detail, 'Must not lie in the future');
});
