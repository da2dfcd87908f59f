import t from 'tap';
import { PROBLEMS, VIOLATIONS, WARNINGS } from '../../../src/errors.ts';
import { seededDatabase } from '../../support/database/database.ts';
import { type Service, serviceOn } from '../../support/http/service.ts';
import {
  bearer,
  type Request,
  serviceWithoutDatabase,
} from '../../support/http/service-without-database.ts';

let refusing: Awaited<ReturnType<typeof serviceWithoutDatabase>>;
let service: Service;
t.before(async () => {
  refusing = await serviceWithoutDatabase(t);
  service = await serviceOn(t, await seededDatabase(t));
});

/** A text that an answer must not repeat in full. */
const LONG = 'Zq'.repeat(100);
const json = { 'content-type': 'application/json' };
const market = { method: 'POST', url: '/v3/prices/nickel' };
const body = (value: object): Request => ({
  ...market,
  headers: json,
  payload: JSON.stringify(value),
});

/** A request for each refusal that needs no database, a long text wherever one fits. */
const REQUESTS: Readonly<Record<string, Request>> = {
  not_found: { method: 'POST', url: `/v3/prices/${LONG}?x=${LONG}` },
  method_not_allowed: { method: 'PUT', url: `/v3/prices/nickel?${LONG}` },
  ambiguous_credentials: { ...market, headers: { 'x-api-key': LONG, authorization: LONG } },
  invalid_token: { ...market, headers: { authorization: `Bearer ${LONG}` } },
  insufficient_scope: { ...market, headers: { authorization: bearer(LONG) } },
  not_acceptable: { ...market, headers: { accept: LONG } },
  unsupported_media_type: { ...market, headers: { 'content-type': LONG }, payload: LONG },
  body_too_large: { ...market, headers: json, payload: LONG.repeat(700) },
  malformed_json: { ...market, headers: json, payload: LONG },
  uri_too_long: { ...market, url: `/v3/prices/nickel?${LONG.repeat(50)}` },
  validation_failed: body({
    [LONG]: 1,
    filters: { [`${LONG}/~`]: 1, codes: [LONG], dateFrom: LONG, products: LONG },
    options: { [LONG]: LONG, strict: LONG },
  }),
  invalid_cursor: body({ options: { cursor: LONG } }),
  database_unavailable: body({ filters: { products: [LONG.slice(0, 128)] } }),
};

t.test(
  'every refusal has the members of RFC 9457, its code and the id of the request',
  async (t) => {
    for (const [code, request] of Object.entries(REQUESTS)) {
      const answer = await refusing.request(request);
      const [status, title] = PROBLEMS[code as keyof typeof PROBLEMS];
      const { detail, errors, ...rest } = answer.json;
      t.equal(answer.status, status, code);
      t.same(rest, {
        type: `/docs/problems#${code}`,
        title,
        status,
        instance: request.url.split('?')[0]?.slice(0, 64),
        code,
        requestId: answer.headers['x-request-id'],
      });
      t.ok(detail.length > 10, detail);
      t.equal(errors !== undefined, ['validation_failed', 'invalid_cursor'].includes(code));
      t.equal(answer.headers['content-type'], 'application/problem+json; charset=utf-8');
      t.equal(answer.headers['cache-control'], 'no-store');
      t.equal(answer.headers['x-content-type-options'], 'nosniff');
    }
  },
);

t.test('no refusal repeats more than 64 characters of what was sent', async (t) => {
  for (const [code, request] of Object.entries(REQUESTS)) {
    const { text, headers } = await refusing.request(request);
    t.notMatch(text, LONG.slice(0, 65), code);
    t.notMatch(text, LONG.slice(1, 66), code);
    t.notMatch(JSON.stringify(headers), LONG.slice(0, 65), code);
  }
  const filters = { products: [LONG.slice(0, 128)], regions: [LONG.slice(0, 128)] };
  const { status, text } = await service.post('nickel', { filters, options: { strict: true } });
  t.equal(status, 400);
  t.notMatch(text, LONG.slice(0, 65));
});

t.test('no refusal contains SQL, a stack, a file or an address of the database', async (t) => {
  for (const [code, request] of Object.entries(REQUESTS)) {
    const { text } = await refusing.request(request);
    t.notMatch(
      text,
      /select |from price|\bat \w+ \(|\.ts\b|node_modules|ECONN|127\.0\.0\.1/i,
      code,
    );
  }
});

t.test('the type of every problem leads to a page that explains it', async (t) => {
  const page = await service.app.inject('/docs/problems');
  t.equal(page.statusCode, 200);
  t.match(page.headers['content-type'], 'text/html');
  const codes = Object.keys({ ...PROBLEMS, ...VIOLATIONS });
  const warnings = Object.keys(WARNINGS).map((code) => `warning-${code}`);
  for (const id of [...codes, ...warnings]) {
    t.equal(page.body.split(`id="${id}"`).length, 2, `${id} stands there once`);
  }
});

t.test('control characters that were sent never come back raw or half', async (t) => {
  const name = `a\u0007\u0000\u2028${'\u{1f4c8}'.repeat(40)}`;
  const { json: told, text } = await refusing.request(body({ filters: { [name]: [] } }));
  t.notMatch(text, /\\u0000|\\u0007|\\ud83d|\\udcc8/i);
  t.ok(told.errors[0].pointer.isWellFormed());
});
