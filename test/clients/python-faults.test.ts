import type { IncomingMessage, ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { python } from '../support/process/python.ts';
import {
  ECHOES,
  ENDLESS,
  echoedWarning,
  endlessTls,
  FINAL_STATUSES,
  fullBacklog,
  INCOMPLETE,
  json,
  KEYS,
  lateRetryAfter,
  ODD_RETRY_AFTER,
  OK,
  partsOf,
  price,
  REPEATED,
  type Responder,
  refused,
  SOON,
  scriptedServer,
  TOKEN,
} from './scripted-server.ts';

/** A test server and Python programs that use it. */
async function serving(test: Pick<typeof t, 'teardown'>, answers: readonly Responder[]) {
  const { url, requests } = await scriptedServer(test, answers);
  const call = (program: string) =>
    python(`import commodity_prices as cp\n${program}`, {
      COMMODITY_PRICES_URL: url,
      COMMODITY_PRICES_KEY: 'key',
    });
  return { call, requests };
}

const ASK = 'print([each["code"] for each in cp.prices("nickel", timeout=20)])';

const problem = (body: object, status: number) =>
  json(body, { 'content-type': 'application/problem+json', ...SOON }, status);

t.test('429, 502, 503, 504 and cut connections are tried again, at most three times', async (t) => {
  for (const [what, answers] of Object.entries(REPEATED)) {
    const some = await serving(t, answers);
    const { code, stdout, stderr } = await some.call(ASK);
    t.same([code, stdout], [0, "['A']\n"], `${what}: ${stderr}`);
    t.equal(some.requests(), answers.length, what);
  }
  const all = await serving(t, [refused(503, 'overloaded', SOON)]);
  const failed = await all.call(ASK);
  t.match(failed.stderr, /PricesError: refused as overloaded/);
  t.equal(all.requests(), 4);
});

t.test('no other refusal is tried again', async (t) => {
  for (const status of FINAL_STATUSES) {
    const one = await serving(t, [refused(status, 'a_code')]);
    const { stderr } = await one.call(ASK);
    t.match(stderr, /PricesError: refused as a_code/, String(status));
    t.equal(one.requests(), 1, String(status));
  }
});

t.test('Retry-After is bounded by the deadline of the call, whatever it says', async (t) => {
  for (const after of lateRetryAfter()) {
    const late = await serving(t, [refused(429, 'rate_limited', { 'retry-after': after })]);
    const begun = performance.now();
    const { stderr } = await late.call('cp.prices("nickel", timeout=3)');
    t.match(stderr, /refused as rate_limited/, after);
    t.equal(late.requests(), 1, after);
    t.ok(performance.now() - begun < 20_000, after);
  }
  for (const after of ODD_RETRY_AFTER) {
    const odd = await serving(t, [refused(503, 'overloaded', { 'retry-after': after }), json(OK)]);
    t.equal((await odd.call(ASK)).stdout, "['A']\n", after);
  }
  const without = await serving(t, [refused(503, 'overloaded'), json(OK)]);
  t.equal((await without.call(ASK)).stdout, "['A']\n");
});

t.test('no call outlasts its deadline, whatever the server does', async (t) => {
  for (const [name, answer] of Object.entries(ENDLESS)) {
    const late = await serving(t, [answer]);
    const { stdout, stderr } = await late.call(`
import time
begun = time.monotonic()
try: cp.prices("nickel", timeout=1)
except cp.PricesError as error: print(error, "after", time.monotonic() - begun)`);
    t.match(stdout, /did not answer in time after/, `${name}: ${stderr}`);
    t.ok(Number(stdout.split(' ').at(-1)) < 2, `${name}: ${stdout}`);
    t.equal(late.requests(), 1, name);
  }
});

t.test('a call ends with its deadline while it connects', async (t) => {
  const full = await fullBacklog(t);
  const four = `
look_up = socket.getaddrinfo
socket.getaddrinfo = lambda *place, **more: look_up(*place, **more) * 4`;
  const slow = 'socket.getaddrinfo = lambda *place, **more: time.sleep(30)';
  const cases = [
    ['four addresses that drop packets', `http://127.0.0.1:${full}`, four],
    ['a lookup without an end', 'http://127.0.0.1:9', slow],
    ['a TLS handshake without an end', `https://127.0.0.1:${await endlessTls(t)}`, ''],
  ] as const;
  for (const [what, url, change] of cases) {
    const { stdout, stderr } = await python(
      `import socket, time, commodity_prices as cp
${change}
begun = time.monotonic()
try: cp.Client("${url}", "key", timeout=1).prices("nickel")
except cp.PricesError as error: print(error, "after", time.monotonic() - begun)`,
      {},
      { timeout: 10_000 },
    );
    t.match(stdout, /did not answer in time after/, `${what}: ${stderr}`);
    t.ok(Number(stdout.split(' ').at(-1)) < 2, `${what}: ${stdout}`);
  }
});

t.test('an answer that is not of version 3 is an error that shows its beginning', async (t) => {
  const html = `<html>${'x'.repeat(1_000)}</html>`;
  const whole = gzipSync(JSON.stringify({ ...OK, more: 'x'.repeat(1_000) }));
  const cases = [
    [
      'a page of a proxy',
      json(html, { 'content-type': 'text/html' }),
      /200 with text\/html.*<html>x+'/,
    ],
    ['a page as refusal', json(html, { 'content-type': 'text/html' }, 500), /500 with text\/html/],
    [
      'a page of 503',
      json(html, { 'content-type': 'text/html', ...SOON }, 503),
      /503 with text\/html/,
    ],
    ['no JSON', json('{"$metadata": {"rev'), /json that is broken or foreign: .*\$metadata/],
    ['another shape', json({ prices: [] }), /no Commodity Prices Service of version 3.*prices/],
    ['a list', json([1]), /no Commodity Prices Service of version 3/],
    [
      'a redirect',
      json('', { location: 'http://127.0.0.1:9/?q=1' }, 302),
      /answered 302, a redirect: set the final address, http:\/\/127.0.0.1:9\/\n$/,
    ],
    ['a part', json('{"half', { 'content-length': '100' }), /a part of its answer.*"half/],
    [
      'a part in chunks',
      (reply: ServerResponse) => {
        reply.writeHead(200, { 'content-type': 'application/json' });
        reply.write('{"half', () => reply.destroy());
      },
      /a part of its answer.*"half/,
    ],
    ['no gzip', json('{"half', { 'content-encoding': 'gzip' }), /a part of its answer.*"half/],
    ['a 304 that was not asked for', json('', {}, 304), /answered 304/],
    [
      'a part that is compressed',
      (reply: ServerResponse) => {
        reply.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
        reply.end(whole.subarray(0, 40));
      },
      /a part of its answer/,
    ],
  ] as const;
  // At once, since most of them wait between attempts.
  const all = cases.map(async ([what, answer, said]) => {
    const odd = await serving(t, [answer]);
    const { code, stdout, stderr } = await odd.call(
      `try: cp.prices("nickel")\nexcept cp.PricesError as error: print("said", error)`,
    );
    t.equal(code, 0, `${what}: ${stderr}`);
    t.match(stdout, said, what);
    t.ok(stdout.length < 500, what);
  });
  await Promise.all(all);
});

t.test('no exception and no warning shows the credential, whatever a server echoes', async (t) => {
  const cases = [...Object.entries(ECHOES), ['a warning', echoedWarning] as const];
  const all = [...KEYS, TOKEN].flatMap((key) =>
    cases.map(([what, answer]) => [key, what, answer] as const),
  );
  const check = async ([key, what, answer]: (typeof all)[number]) => {
    const { url } = await scriptedServer(t, [answer]);
    const program = `
import json, traceback, warnings, commodity_prices as cp
with warnings.catch_warnings(record=True) as caught:
    try: cp.prices("nickel", timeout=5)
    except cp.PricesError as error:
        print(json.dumps([str(error), error.code, error.request_id, traceback.format_exc(),
              *(text for each in error.errors for text in each.values())]))
if caught: print(json.dumps([str(each.message) for each in caught]))`;
    const name = key === TOKEN ? 'COMMODITY_PRICES_TOKEN' : 'COMMODITY_PRICES_KEY';
    const env = { COMMODITY_PRICES_URL: url, [name]: key };
    const { stdout, stderr } = await python(program, env);
    const texts = JSON.parse(stdout || '[]').map(String) as string[];
    t.match(texts[0], '[secret]', `${what}: ${stderr}`);
    for (const text of texts) {
      const shown = partsOf(key).filter((part) => text.toLowerCase().includes(part.toLowerCase()));
      t.same(shown, [], `${what}: ${text}`);
    }
  };
  // Four at once: each is a process, and has a deadline.
  for (let at = 0; at < all.length; at += 4) await Promise.all(all.slice(at, at + 4).map(check));
});

t.test('the credentials of a proxy are in no exception either', async (t) => {
  const echo: Responder = (reply, { headers }) =>
    json(
      `It sent ${headers['proxy-authorization']}`,
      { 'content-type': 'text/plain' },
      407,
    )(reply, {} as IncomingMessage);
  const { url } = await scriptedServer(t, [echo]);
  const proxy = url.replace('//', '//someone:pass%20word@');
  const program = `import commodity_prices as cp
try: cp.Client("http://prices.invalid", "key-of-a-client").prices("nickel")
except cp.PricesError as error: print(error)`;
  const { stdout, stderr } = await python(program, { http_proxy: proxy, no_proxy: '' });
  t.match(stdout, /It sent Basic \[secret\]/, stderr);
  t.notMatch(stdout, Buffer.from('someone:pass word').toString('base64').slice(0, 12));
});

t.test('an answer that resembles one of version 3 is an error', async (t) => {
  const warned = (warnings: unknown) => ({ ...OK, $metadata: { ...OK.$metadata, warnings } });
  const counted = { ...OK.$metadata, count: 2 };
  const [point] = price('A').series;
  const wordy = { ...price('A'), series: [{ ...point, mid: 'much' }] };
  const cases: readonly (readonly [string, Responder, RegExp])[] = [
    ['no content', (reply: ServerResponse) => reply.writeHead(204).end(), /no Commodity .*null/],
    ['other metadata', json({ $metadata: { version: 4 }, data: [] }), /no Commodity .*version/],
    ['texts as warnings', json(warned(['a'])), /no Commodity Prices Service/],
    ['null as warnings', json(warned(null)), /no Commodity Prices Service/],
    ['records without codes', json({ ...OK, data: [null] }), /no Commodity Prices Service/],
    ['fewer records than it says', json({ ...OK, $metadata: counted }), /no Commodity .*count/],
    ...Object.entries(INCOMPLETE).map(
      ([fault, each]) => [fault, json({ ...OK, data: [each] }), /lacks a part: .*"A"/] as const,
    ),
    ['no currency', json({ ...OK, data: [{ ...price('A'), currency: '$' }] }), /lacks a part/],
    ['a word as number', json({ ...OK, data: [wordy] }), /lacks a part/],
    ['errors by name', problem({ code: 'X', detail: 'd', errors: { a: ['b'] } }, 422), /said d$/m],
    ['errors as texts', problem({ code: 'X', detail: 'd', errors: ['b'] }, 422), /said d$/m],
    ['no detail', problem({ code: 'X', detail: null }, 404), /404 with .* broken or foreign.*"X"/],
    ['a refusal of a gateway', problem({ code: 400, message: 'm' }, 400), /400 with .*"message"/],
  ];
  const all = cases.map(async ([what, answer, said]) => {
    const odd = await serving(t, [answer]);
    const { stdout, stderr } = await odd.call(
      `try: cp.prices("nickel")\nexcept cp.PricesError as error: print("said", error)`,
    );
    t.match(stdout, said, `${what}: ${stderr}`);
  });
  await Promise.all(all);
});

t.test('a failed connection is reported with its cause', async (t) => {
  const { stderr } = await python(
    'import commodity_prices as cp\ncp.Client("http://127.0.0.1:9", "key", timeout=0.4).markets()',
  );
  t.match(stderr, /The connection to http:\/\/127.0.0.1:9 failed: .*Connection refused/);
});

t.test('a timeout that is no positive number is refused before a request', async (t) => {
  const one = await serving(t, [json(OK)]);
  const { stdout, stderr } = await one.call(`
for wrong in (0, -1, float("nan"), float("inf"), 1e9):
    for call in (lambda: cp.prices("nickel", timeout=wrong), cp.Client(timeout=wrong).markets):
        try: call()
        except cp.PricesError as error: print(error)`);
  const lines = stdout.trimEnd().split('\n');
  t.equal(lines.length, 10, stderr);
  t.same([...new Set(lines)], ['timeout must be above 0 and at most 2,000,000 seconds']);
  t.equal(one.requests(), 0);
});

t.test('a call that is interrupted closes its connection', async (t) => {
  let closed = () => {};
  const isClosed = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const open = await serving(t, [(reply) => reply.on('close', closed)]);
  const { stderr } = await open.call(`
import _thread, threading
threading.Timer(0.5, _thread.interrupt_main).start()
cp.prices("nickel", timeout=30)`);
  t.match(stderr, /KeyboardInterrupt/);
  await isClosed;
});

t.test('the key is in a header only, and is sent to no other address', async (t) => {
  let seen: IncomingMessage | null = null;
  const one = await serving(t, [
    (reply, request) => {
      seen = request;
      json(OK)(reply, request);
    },
  ]);
  await one.call(ASK);
  const { url, headers } = seen as unknown as IncomingMessage;
  t.equal(url, '/v3/prices/nickel');
  t.equal(headers['x-api-key'], 'key');
  const other = await scriptedServer(t, [json(OK)]);
  for (const status of [301, 302, 307, 308]) {
    const moved = await serving(t, [json(OK, { location: other.url }, status)]);
    t.match((await moved.call(ASK)).stderr, new RegExp(`PricesError: .* answered ${status}`));
  }
  t.equal(other.requests(), 0);
  const none = await serving(t, [json(OK)]);
  for (const call of [
    'prices("cps_live_a")',
    'search("cps_live_a")',
    'changes(after="cps_a_b")',
    'search("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.x")',
  ]) {
    t.match((await none.call(`cp.${call}`)).stderr, /An argument holds a credential/, call);
  }
  t.equal(none.requests(), 0);
});

t.test('a bearer token is requested for each attempt, within the deadline', async (t) => {
  const sent: unknown[] = [];
  const seen =
    (answer: Responder): Responder =>
    (reply, request) => {
      sent.push(request.headers.authorization, request.headers['x-api-key']);
      answer(reply, request);
    };
  const answers = [seen(refused(503, 'overloaded', SOON)), seen(json(OK))];
  const { url, requests } = await scriptedServer(t, answers);
  const { stdout, stderr } = await python(`
import itertools, time, commodity_prices as cp
count = itertools.count(1)
cp.Client("${url}", token=lambda: f"token.{next(count)}").prices("nickel")
cp.Client("${url}", token="a.b.c").prices("nickel")
def refused(**options):
    try: cp.Client("${url}", **options).markets()
    except cp.PricesError as error: print(error, "|", repr(error.__cause__))
def fails(): raise ValueError("the issuer is down")
refused(token=fails)
refused(token=lambda: "a b")
refused(token=lambda: "")
refused(token=lambda: time.sleep(30), timeout=0.5)
refused(key="a", token="b")
refused(token="a b")`);
  const expected = ['Bearer token.1', 'Bearer token.2', 'Bearer a.b.c'];
  t.same(
    sent,
    expected.flatMap((each) => [each, undefined]),
    stderr,
  );
  t.match(stdout.trimEnd().split('\n'), [
    /^No token: the function of the client failed \| ValueError\('the issuer is down'\)$/,
    /^The token holds a space/,
    /^The token holds a space/,
    /did not answer in time/,
    /^There are a key and a token; give one of them/,
    /^The token holds a space/,
  ]);
  t.equal(requests(), 3, 'no request without a token');
});

t.test('a file that breaks off or takes too long ends with an exception', async (t) => {
  const begun =
    (headers: Record<string, string>, then: (reply: ServerResponse) => void): Responder =>
    (reply) => {
      reply.writeHead(200, { 'content-type': 'text/csv; charset=utf-8', ...headers });
      reply.write('code,date\r\n', () => then(reply));
    };
  const READ = `
import time
begun = time.monotonic()
try:
    with cp.file("nickel", "csv", timeout=1) as made: print(made.read(4), made.read())
except cp.PricesError as error: print(error, "|", time.monotonic() - begun)`;
  const cut = (reply: ServerResponse) => reply.destroy();
  const whole = gzipSync('code,date\r\n'.repeat(1_000));
  const half: Responder = (reply) => {
    reply.writeHead(200, { 'content-type': 'text/csv', 'content-encoding': 'gzip' });
    reply.end(whole.subarray(0, 30));
  };
  for (const answer of [begun({}, cut), begun({ 'content-length': '99' }, cut), half]) {
    const broken = await serving(t, [answer]);
    const { stdout, stderr } = await broken.call(READ);
    t.match(stdout, /sent a part of its answer only \|/, stderr);
    t.equal(broken.requests(), 1);
  }
  for (const headers of [{}, { 'content-length': '99' }, { connection: 'close' }]) {
    const late = await serving(t, [begun(headers, () => {})]);
    const { stdout, stderr } = await late.call(READ);
    t.match(stdout, /did not send its answer in time \|/, stderr);
    t.ok(Number(stdout.split('|').at(-1)) < 2, stdout);
  }
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const left = await serving(t, [begun({}, (reply) => reply.on('close', resolve))]);
  await left.call('cp.file("nickel", "csv").close()');
  await closed;
  const other = await serving(t, [json(OK)]);
  t.match((await other.call('cp.file("nickel", "csv")')).stderr, /PricesError: .* instead of text/);
  t.match((await other.call('cp.file("nickel", "xml")')).stderr, /no format 'xml', only csv, nd/);
});

t.test('a page of the feed needs a position', async (t) => {
  const known = (reply: ServerResponse) => reply.writeHead(204, { 'x-next-seq': 'abcd.7' }).end();
  const one = await serving(t, [known]);
  t.equal((await one.call('print(cp.changes().next_seq)')).stdout, 'abcd.7\n');
  for (const answer of [(reply: ServerResponse) => reply.writeHead(204).end(), json(OK)]) {
    const bare = await serving(t, [answer]);
    t.match((await bare.call('cp.changes()')).stderr, /no Commodity Prices Service of version 3/);
  }
});
