import t from 'tap';
import { MARKETS, type MarketSlug } from '../../src/catalog/markets.ts';
import { ALL_MARKETS, scopeOf } from '../../src/catalog/scopes.ts';
import { testDatabase } from '../support/database/database.ts';
import { keyFor, type Service, serviceOn } from '../support/http/service.ts';
import { changesOf, type WireChange } from '../support/prices/feed-oracle.ts';
import { LINES } from '../support/prices/feed-pages.ts';
import { addPrice, commit, putPoints } from '../support/prices/sample-writes.ts';

const SLUGS: readonly MarketSlug[] = MARKETS.map(({ slug }) => slug);
const SECRETS = { JWT_SECRET: 'the secret of the feed, which has 32 bytes and more' };

const DAYS = ['2026-02-02', '2026-02-03', '2026-02-04'];

let service: Service;
let start = '';
/** The changes after the start, by market. */
const changed = new Map<string, WireChange[]>();
const keys = new Map<string, string>();

const ask = (query: string, key: string) =>
  service.request({
    method: 'GET',
    url: `/v3/changes?after=${start}${query}`,
    headers: { 'x-api-key': key, ...LINES },
  });

t.before(async () => {
  const database = await testDatabase(t, { seeded: true });
  service = await serviceOn(t, database, SECRETS);
  const { rows } = await database.pool.query(`
    select s.epoch || r.commit_id || '.' || (c.first_seq + c.price_changes + c.points - 1) as end
    from service s, change_segment c join revision r on r.number = c.revision
    order by c.first_seq desc limit 1`);
  start = rows[0].end;
  await commit(database.pool, async (client) => {
    for (const market of SLUGS) {
      await addPrice(client, { code: `F-${market}`, currency: 'USD', unit: 'tonne', market });
    }
  });
  for (const day of DAYS) {
    await commit(database.pool, async (client) => {
      for (const market of SLUGS) await putPoints(client, `F-${market}`, [day, null, '5', null]);
    });
  }
  for (const change of changesOf((await ask('&limit=500', service.key)).text)) {
    changed.set(change.market, [...(changed.get(change.market) ?? []), change]);
  }
  for (const slug of SLUGS) keys.set(slug, await keyFor(database, [scopeOf(slug)]));
  keys.set('three', await keyFor(database, ['prices:nickel', 'prices:copper', 'prices:lithium']));
  keys.set('all', await keyFor(database, [ALL_MARKETS]));
});

const keyOf = (name: string): string => keys.get(name) ?? '';

t.test('a scope shows the changes of its own market, and no other', async (t) => {
  for (const slug of SLUGS) {
    const own = changed.get(slug) ?? [];
    t.equal(own.length, 4, slug);
    t.strictSame(changesOf((await ask('', keyOf(slug))).text), own, slug);
    t.strictSame(changesOf((await ask(`&market=${slug}`, keyOf(slug))).text), own, slug);
    t.strictSame(changesOf((await ask(`&market=${slug}`, keyOf('all'))).text), own, slug);
  }
});

t.test('a market that is not open is refused with the scope that it needs', async (t) => {
  for (const held of SLUGS) {
    for (const requested of SLUGS.filter((each) => each !== held)) {
      const { status, json, headers } = await ask(`&market=${requested}`, keyOf(held));
      t.same([status, json.code], [403, 'insufficient_scope'], `${held} asks for ${requested}`);
      t.equal(
        headers['www-authenticate'],
        `Bearer error="insufficient_scope", scope="prices:${requested}"`,
      );
    }
  }
  const both = await ask('&market=nickel&market=cobalt', keyOf('three'));
  t.equal(both.status, 403);
  t.match(both.json.detail, /^The scope prices:cobalt is needed here: request it from /);
  const broken = await ask('&market=cobalt&limit=none&unknown=1', keyOf('nickel'));
  t.equal(broken.status, 403, 'before anything else of the query is validated');
});

t.test('changes of several markets come together, in the order of the commits', async (t) => {
  const of = (...slugs: string[]) =>
    slugs
      .flatMap((slug) => changed.get(slug) ?? [])
      .sort((a, b) => Number(a.seq.split('.')[1]) - Number(b.seq.split('.')[1]));
  const three = of('lithium', 'nickel', 'copper');
  t.strictSame(changesOf((await ask('', keyOf('three'))).text), three);
  const two = '&market=copper&market=nickel&market=copper';
  t.strictSame(changesOf((await ask(two, keyOf('three'))).text), of('nickel', 'copper'));
  t.strictSame(changesOf((await ask(two, keyOf('all'))).text), of('nickel', 'copper'));
  t.strictSame(changesOf((await ask('', keyOf('all'))).text), of(...SLUGS));
});

t.test('a reader of one market is taken past the changes of all others', async (t) => {
  const end = (await ask('', keyOf('all'))).headers['x-next-seq'];
  for (const slug of SLUGS) {
    const own = changed.get(slug) ?? [];
    const answer = await ask('', keyOf(slug));
    t.equal(answer.headers['x-next-seq'], end, `${slug}: to the end of everything`);
    const paged: WireChange[] = [];
    let at = start;
    for (let pages = 0; pages < 10; pages += 1) {
      const { text, headers } = await service.request({
        method: 'GET',
        url: `/v3/changes?limit=1&after=${at}`,
        headers: { 'x-api-key': keyOf(slug), ...LINES },
      });
      at = headers['x-next-seq'] ?? '';
      const found = changesOf(text);
      if (found.length === 0) break;
      paged.push(...found);
    }
    t.strictSame(paged, own, `${slug}: one at a time`);
    t.equal(at, end);
  }
});

t.test('without the scope of any market there is no feed, without credential none', async (t) => {
  const { app } = service;
  const ask = (headers: Record<string, string>) => app.inject({ url: '/v3/changes', headers });
  const none = await ask({});
  t.same([none.statusCode, none.json().code], [401, 'missing_credentials']);
  const { goodClaims, hmac, tokenOf } = await import('../support/auth/tokens.ts');
  const bearer = (scope: string) => {
    const claims = goodClaims({ iss: 'commodity-prices', aud: 'commodity-prices', scope });
    const token = tokenOf({ alg: 'HS256' }, claims, hmac(SECRETS.JWT_SECRET));
    return { authorization: `Bearer ${token}` };
  };
  for (const scope of ['', 'openid', 'prices', 'PRICES:NICKEL', 'prices:gold', 'prices:nickel*']) {
    const answer = await ask(bearer(scope));
    t.same([answer.statusCode, answer.json().code], [403, 'insufficient_scope'], scope);
    t.match(answer.json().detail, /prices:<market>.*prices:\*/);
  }
  t.equal((await ask(bearer('openid prices:nickel'))).statusCode, 200);
});
