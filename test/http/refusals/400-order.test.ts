import t from 'tap';
import {
  bearer,
  type Request,
  serviceWithoutDatabase,
} from '../../support/http/service-without-database.ts';

/** One thing that is wrong with a request, and how it is refused when nothing before it is. */
interface BrokenRule {
  readonly name: string;
  readonly status: number;
  readonly code: string;
  readonly url?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly payload?: string;
}

/** In the order in which the contract checks them. */
const FAULTS: readonly BrokenRule[] = [
  { name: 'no such address', status: 404, code: 'not_found', url: '/v3/prices/unobtainium' },
  { name: 'wrong method', status: 405, code: 'method_not_allowed', method: 'PUT' },
  {
    name: 'both credentials',
    status: 400,
    code: 'ambiguous_credentials',
    headers: { 'x-api-key': 'cps_live_0', authorization: bearer('prices:*') },
  },
  {
    name: 'a bad token',
    status: 401,
    code: 'invalid_token',
    headers: { authorization: 'Bearer x' },
  },
  {
    name: 'a scope of another market',
    status: 403,
    code: 'insufficient_scope',
    headers: { authorization: bearer('prices:copper') },
  },
  { name: 'XML wanted', status: 406, code: 'not_acceptable', headers: { accept: 'text/xml' } },
  {
    name: 'a form',
    status: 415,
    code: 'unsupported_media_type',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  },
  { name: 'too large', status: 413, code: 'body_too_large', payload: 'x'.repeat(131_073) },
  { name: 'no JSON', status: 400, code: 'malformed_json', payload: '{"filters":' },
  { name: 'a broken rule', status: 400, code: 'validation_failed', payload: '{"filter":{}}' },
];

const PLAIN: Request = {
  method: 'POST',
  url: '/v3/prices/nickel',
  headers: { 'content-type': 'application/json' },
  payload: '{}',
};

/** A request with these faults; where two say the same header, the first has its way. */
function requestWith(faults: readonly BrokenRule[]): Request {
  const all = [PLAIN as BrokenRule & Request, ...faults.toReversed()];
  return Object.assign({}, ...all, {
    headers: Object.assign({}, ...all.map((each) => each.headers)),
  });
}

let service: Awaited<ReturnType<typeof serviceWithoutDatabase>>;
t.before(async () => {
  service = await serviceWithoutDatabase(t);
});

t.test('a request with nothing wrong gets as far as the database', async (t) => {
  const { status, json } = await service.request(PLAIN);
  t.same([status, json.code], [503, 'database_unavailable']);
});

t.test('the earlier of two violations is reported, and no SQL runs for either', async (t) => {
  for (const [index, first] of FAULTS.entries()) {
    for (const second of FAULTS.slice(index)) {
      const { status, json } = await service.request(requestWith([first, second]));
      t.same(
        [status, json.code],
        [first.status, first.code],
        `${first.name} before ${second.name}`,
      );
    }
  }
});

t.test('the earliest of all violations is reported', async (t) => {
  for (const index of FAULTS.keys()) {
    const [first, ...later] = FAULTS.slice(index);
    if (!first) continue;
    const { status, json } = await service.request(requestWith([first, ...later]));
    t.same([status, json.code], [first.status, first.code], first.name);
  }
});

t.test('an answer reveals nothing about a market without its scope', async (t) => {
  const answer = (slug: string) =>
    service.app.inject({ method: 'POST', url: `/v3/prices/${slug}`, payload: { filters: 1 } });
  t.equal((await answer('nickel')).statusCode, 401);
  t.equal((await answer('unobtainium')).statusCode, 404);
});

t.test('filters and the list of markets check in the same order', async (t) => {
  for (const url of ['/v3/prices', '/v3/prices/nickel/filters']) {
    const ask = async (headers: Record<string, string>, method = 'GET') => {
      const { status } = await service.request({ method, url, headers });
      return status;
    };
    const xml = { accept: 'text/xml' };
    t.equal(await ask({ ...xml, authorization: 'Bearer x' }, 'DELETE'), 405, url);
    t.equal(await ask({ ...xml, 'x-api-key': 'x' }), 400, url);
    t.equal(await ask({ ...xml, authorization: 'Bearer x' }), 401, url);
    t.equal(await ask(xml), 406, url);
    t.equal(await ask({}), 503, url);
  }
});
