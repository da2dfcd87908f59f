import type { IncomingMessage, ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { createClient, PricesError } from '../../clients/typescript/client.js';
import {
  closedConnection,
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
  REPEATED,
  type Responder,
  refused,
  SOON,
  scriptedServer,
  TOKEN,
} from './scripted-server.ts';

type Test = Pick<typeof t, 'teardown'>;

/** A test server and a client that uses it. */
async function serving(test: Test, answers: readonly Responder[]) {
  const { url, requests } = await scriptedServer(test, answers);
  return { client: createClient({ url, key: 'key', timeoutMs: 20_000 }), url, requests };
}

/** The error of a call, which must be one of the client. */
async function errorOf(call: Promise<unknown>): Promise<PricesError> {
  const error = await call.then(
    () => new Error('the call had an answer'),
    (fault: unknown) => fault,
  );
  if (error instanceof PricesError) return error;
  throw error;
}

t.test(
  '429, 502, 503, 504, 304 and cut connections are tried again, at most three times',
  async (t) => {
    const unasked = [json('', SOON, 304), json(OK)];
    for (const [what, answers] of Object.entries({ ...REPEATED, 'an unasked 304': unasked })) {
      const some = await serving(t, answers);
      t.equal((await some.client.prices('nickel')).revision, 'abcd.1', what);
      t.equal(some.requests(), answers.length, what);
    }
    const all = await serving(t, [refused(503, 'overloaded', SOON)]);
    const { status, code, requestId, retryAfterMs } = await errorOf(all.client.prices('nickel'));
    t.same([status, code, requestId, retryAfterMs], [503, 'overloaded', 'r-1', 0]);
    t.equal(all.requests(), 4);
  },
);

t.test('no other refusal is tried again', async (t) => {
  for (const status of FINAL_STATUSES) {
    const one = await serving(t, [refused(status, 'internal_error')]);
    const error = await errorOf(one.client.changes());
    t.match(error, { name: 'PricesError', status, code: 'internal_error' });
    t.match(error.message, /refused as internal_error/);
    t.equal(one.requests(), 1, String(status));
  }
});

t.test('Retry-After is obeyed, and bounded by the deadline of the call', async (t) => {
  const date = (ms: number) => new Date(Date.now() + ms).toUTCString();
  for (const after of lateRetryAfter()) {
    const late = await serving(t, [refused(429, 'rate_limited', { 'retry-after': after })]);
    const begun = performance.now();
    const error = await errorOf(late.client.prices('nickel', {}, { timeoutMs: 5_000 }));
    t.equal(error.code, 'rate_limited', after);
    t.ok((error.retryAfterMs ?? 0) > 5_000, after);
    t.equal(late.requests(), 1, after);
    t.ok(performance.now() - begun < 5_000, 'the client does not wait beyond its deadline');
  }
  const waits = async (after: Record<string, string>): Promise<number> => {
    const one = await serving(t, [refused(503, 'overloaded', after), json(OK)]);
    const begun = performance.now();
    await one.client.prices('nickel');
    return performance.now() - begun;
  };
  t.ok((await waits({ 'retry-after': '1' })) >= 990);
  t.ok((await waits({ 'retry-after': date(2_000) })) >= 900);
  // The backoff of the client, where the header says nothing.
  for (const after of ODD_RETRY_AFTER) {
    t.ok((await waits({ 'retry-after': after })) >= 490, after);
  }
  t.ok((await waits({})) >= 490);
  t.ok((await waits({ 'retry-after': date(-60_000) })) < 20_000, 'a date in the past');
});

t.test('a silent server, an endless answer and a slow one end with the deadline', async (t) => {
  for (const [what, answer] of Object.entries(ENDLESS)) {
    const silent = await serving(t, [answer]);
    const begun = performance.now();
    const error = await errorOf(silent.client.prices('nickel', {}, { timeoutMs: 700 }));
    t.match(error.message, /did not answer within 700 ms/, what);
    t.ok(performance.now() - begun >= 690, what);
    t.equal(silent.requests(), 1, what);
  }
  const { url } = await serving(t, [() => {}]);
  const withTimeout = createClient({ url, key: 'key', timeoutMs: 700 });
  const error = await errorOf(withTimeout.prices('nickel', {}, { timeoutMs: undefined }));
  t.match(error.message, /within 700 ms/, 'undefined keeps the timeout of the client');
});

t.test('a call ends with its deadline while it connects', async (t) => {
  const addresses = [
    `http://127.0.0.1:${await fullBacklog(t)}`,
    `https://127.0.0.1:${await endlessTls(t)}`,
  ];
  for (const url of addresses) {
    const begun = performance.now();
    const call = createClient({ url, key: 'key' }).prices('nickel', {}, { timeoutMs: 700 });
    t.match((await errorOf(call)).message, /did not answer within 700 ms/, url);
    t.ok(performance.now() - begun < 1_500, url);
  }
});

t.test('an answer that is not of version 3 is an error that shows its beginning', async (t) => {
  const html = `<html>${'x'.repeat(100_000)}</html>`;
  const page = { 'content-type': 'text/html; charset=utf-8' };
  const whole = gzipSync(JSON.stringify({ ...OK, more: 'x'.repeat(1_000) }));
  const counted = { ...OK, $metadata: { ...OK.$metadata, count: 2 } };
  const others: readonly (readonly [string, Responder, RegExp])[] = [
    ['a page of a proxy', json(html, page), /200: text\/html, no answer .*<html>x+$/],
    ['a page as refusal', json(html, page, 500), /500: text\/html, no answer of version 3/],
    ['a page labelled JSON', json(html), /200: application\/json, no answer .*<html>x+$/],
    ['no whole JSON', json('{"$metadata": {"rev'), /answered 200: .*no answer .*"rev$/],
    ['no type', json(OK, { 'content-type': '' }), /no answer of version 3: \{"\$meta/],
    ['another shape', json({ prices: [] }), /no answer of version 3: \{"prices/],
    ['a list', json([1]), /no answer of version 3: \[1\]/],
    ['null', json('null'), /no answer of version 3: null/],
    ['fewer records than it says', json(counted), /no answer of version 3: \{/],
    ['another problem', json({ errors: { a: ['b'] } }, {}, 400), /answered 400: .*\{"errors"/],
    [
      'a redirect',
      json('', { location: 'http://127.0.0.1:9/?q=1' }, 302),
      /answered 302: a redirect to http:\/\/127.0.0.1:9\/; set url to its host$/,
    ],
    ['another version', refused(404, 'not_found'), /refused as .*is for version 3\)$/],
  ];
  for (const [what, answer, said] of others) {
    const odd = await serving(t, [answer]);
    const { message } = await errorOf(odd.client.prices('nickel'));
    t.match(message, said, what);
    t.ok(message.length < 400, what);
    t.equal(odd.requests(), 1, `${what}: it is not asked for again`);
  }
  const parts: readonly (readonly [string, Responder])[] = [
    [
      'a part that is compressed',
      (reply: ServerResponse) => {
        reply.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
        reply.end(whole.subarray(0, 40));
      },
    ],
    [
      'a part',
      (reply: ServerResponse) => {
        reply.writeHead(200, { 'content-type': 'application/json', 'content-length': '9999' });
        reply.write('{"$metadata": {"rev', () => reply.destroy());
      },
    ],
  ];
  for (const [what, answer] of parts) {
    const odd = await serving(t, [answer, answer, answer, json(html, page)]);
    const call = odd.client.prices('nickel', {}, { timeoutMs: 400 });
    t.match((await errorOf(call)).message, /sent a part of its answer only: (\{"\$meta|$)/, what);
  }
  const { client } = await serving(t, [closedConnection]);
  const call = client.prices('nickel', {}, { timeoutMs: 400 });
  t.match((await errorOf(call)).message, /cannot be reached: \w+/);
  // fetch refuses this port with a cause that has no code.
  const blocked = createClient({ url: 'http://127.0.0.1:9', key: 'key', timeoutMs: 400 });
  t.match((await errorOf(blocked.prices('nickel'))).message, /cannot be reached: bad port$/);
});

t.test('no error and no warning shows the credential, whatever a server echoes', async (t) => {
  for (const key of [...KEYS, TOKEN]) {
    const credential = key === TOKEN ? { token: () => key } : { key };
    const hidden = (text: string, what: string): void => {
      const shown = partsOf(key).filter((part) => text.toLowerCase().includes(part.toLowerCase()));
      t.same(shown, [], `${what}: ${text}`);
    };
    for (const [what, answer] of Object.entries(ECHOES)) {
      const { url } = await scriptedServer(t, [answer]);
      const client = createClient({ url, ...credential, timeoutMs: 400 });
      const calls = [
        () => client.prices('nickel'),
        () => client.changes(),
        () => client.me(),
        () => client.file('nickel', 'csv'),
      ];
      for (const call of calls) {
        const error = await errorOf(call());
        const { message, code, errors, requestId, stack, cause } = error;
        hidden([message, stack, String(cause)].join('\n'), what);
        hidden(JSON.stringify({ code, errors, requestId }), what);
        for (const each of [code, requestId, ...errors.flatMap(Object.values)])
          hidden(String(each), what);
        if (what !== 'no status line') t.match(message, '[secret]', what);
      }
    }
    const { url } = await scriptedServer(t, [echoedWarning]);
    const warnings = t.capture(console, 'warn', () => {});
    const { metadata } = await createClient({ url, ...credential }).prices('nickel');
    for (const text of [
      ...(warnings()[0]?.args.slice(1) ?? []),
      ...metadata.warnings.flatMap(Object.values),
    ])
      hidden(String(text), 'a warning');
  }
});

t.test('an answer that resembles one of version 3 is an error', async (t) => {
  const of = (metadata: object) => json({ $metadata: metadata, data: [] });
  const others: readonly (readonly [string, Responder, RegExp])[] = [
    ['no content', (reply) => reply.writeHead(204).end(), /answered 204: no content, no answer/],
    ['other metadata', of({ market: 'nickel', version: 4 }), /no answer of version 3: \{"\$meta/],
    ['no warnings', of({ revision: 'abcd.1' }), /no answer of version 3: \{"\$meta/],
    ['no list', of({ revision: 'a.1', warnings: {} }), /no answer of version 3: \{"\$meta/],
    ['null as warning', of({ revision: 'a.1', warnings: [null] }), /no answer of version 3/],
    ['records without codes', json({ ...OK, data: [null] }), /no answer of version 3/],
    ...Object.entries(INCOMPLETE).map(
      ([fault, each]) =>
        [fault, json({ ...OK, data: [each] }), /200: .*no answer of .*"code":"A"/] as const,
    ),
    ['errors as null', json({ code: 'X', detail: 'd', errors: null }, {}, 400), /answered 400: d$/],
    ['errors by name', json({ code: 'X', detail: 'd', errors: { a: ['b'] } }, {}, 422), /422: d$/],
    ['errors as texts', json({ code: 'X', detail: 'd', errors: [null, 'b'] }, {}, 400), /400: d$/],
    [
      'a refusal of a gateway',
      json({ code: 400, message: 'no healthy upstream' }, {}, 400),
      /400: application\/json, no answer of version 3: .*no healthy upstream/,
    ],
    [
      'a refusal without a text',
      json({ code: 'X', detail: null }, {}, 400),
      /no answer of version 3/,
    ],
  ];
  for (const [what, answer, said] of others) {
    const odd = await serving(t, [answer]);
    t.match((await errorOf(odd.client.prices('nickel'))).message, said, what);
    t.equal(odd.requests(), 1, `${what}: it is not asked for again`);
  }
});

t.test(
  'a timeout that is not positive ends the call at once, and an infinite one is none',
  async (t) => {
    const silent = await serving(t, [() => {}]);
    for (const timeoutMs of [0, -1, Number.NaN]) {
      const { message } = await errorOf(silent.client.prices('nickel', {}, { timeoutMs }));
      t.match(message, `did not answer within ${timeoutMs} ms`);
    }
    const { client } = await serving(t, [json(OK)]);
    await client.prices('nickel', {}, { timeoutMs: Number.POSITIVE_INFINITY });
  },
);

t.test('a cancelled call closes its connection and rejects with the reason', async (t) => {
  const reason = new Error('the user left');
  const begins: Responder = (reply) => {
    reply.writeHead(200, { 'content-type': 'application/json' });
    reply.write('{');
  };
  for (const begin of [() => {}, begins]) {
    const control = new AbortController();
    let closed = () => {};
    const isClosed = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const open = await serving(t, [
      (reply, request) => {
        begin(reply, request);
        reply.on('close', closed);
        setTimeout(() => control.abort(reason), 50);
      },
    ]);
    await t.rejects(open.client.prices('nickel', {}, { signal: control.signal }), reason);
    await isClosed;
  }
  const control = new AbortController();
  const after = { 'retry-after': '15' };
  const waiting = await serving(t, [
    (reply, request) => {
      refused(429, 'rate_limited', after)(reply, request);
      setTimeout(() => control.abort(reason), 50);
    },
  ]);
  const begun = performance.now();
  await t.rejects(waiting.client.changes({}, { signal: control.signal }), reason);
  t.ok(performance.now() - begun < 10_000, 'also while it waits to try again');
  await t.rejects(waiting.client.changes({}, { signal: control.signal }), reason);
  t.equal(waiting.requests(), 1, 'and before it is sent');
  await t.rejects(
    waiting.client.changes({}, { signal: AbortSignal.abort() }),
    { name: 'AbortError' },
    'without a reason',
  );
});

t.test('a position of the feed comes with a page and without changes', async (t) => {
  const headers = { 'x-next-seq': 'abcd.7', 'x-data-revision': 'abcd.3' };
  const empty: Responder = (reply) => reply.writeHead(204, headers).end();
  const { client } = await serving(t, [empty]);
  t.same(await client.changes({ wait: 1 }), {
    ...{ data: [], nextSeq: 'abcd.7', revision: 'abcd.3' },
    ...{ hasMore: false, warnings: [] },
  });
  const page = json({ $metadata: { nextSeq: 'abcd.8' }, data: [] });
  t.equal((await (await serving(t, [page])).client.changes()).nextSeq, 'abcd.8', 'no header');
  const bare: readonly Responder[] = [
    (reply) => reply.writeHead(204).end(),
    json({ $metadata: {}, data: [] }, headers),
    json(OK, headers),
  ];
  for (const answer of bare) {
    const { client } = await serving(t, [answer]);
    t.match((await errorOf(client.changes())).message, /no answer of version 3/, 'no position');
  }
});

t.test('the case of a media type does not matter', async (t) => {
  const { client } = await serving(t, [json(OK, { 'content-type': 'Application/JSON' })]);
  t.equal((await client.prices('nickel')).revision, 'abcd.1');
});

t.test('pages end where an answer names no next one', async (t) => {
  const { client, requests } = await serving(t, [json(OK)]);
  const pages = [];
  for await (const page of client.pages('nickel')) if (pages.push(page) > 2) break;
  t.same([pages.length, requests()], [1, 1]);
});

t.test('the key is in a header only, and goes to no other address', async (t) => {
  const seen: IncomingMessage[] = [];
  const elsewhere = await serving(t, [json(OK)]);
  const one = await serving(t, [
    (reply, request) => {
      seen.push(request);
      json('', { location: `${elsewhere.url}/v3/prices/nickel` }, 307)(reply, request);
    },
  ]);
  const error = await errorOf(one.client.prices('nickel'));
  t.equal(elsewhere.requests(), 0);
  t.equal(seen[0]?.url, '/v3/prices/nickel');
  t.equal(seen[0]?.headers['x-api-key'], 'key');
  t.notMatch(JSON.stringify([error, error.message, one.client]), /"key"/);
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
  let count = 0;
  const next = async () => {
    count += 1;
    return `token.${count}`;
  };
  const client = createClient({ url, token: next });
  await client.prices('nickel');
  await createClient({ url, token: 'a.b.c' }).prices('nickel');
  const expected = ['Bearer token.1', 'Bearer token.2', 'Bearer a.b.c'];
  t.same(
    sent,
    expected.flatMap((each) => [each, undefined]),
  );
  const cause = new Error('the issuer is down');
  const failing = createClient({ url, token: () => Promise.reject(cause) });
  const error = await errorOf(failing.prices('nickel'));
  t.same([error.message, error.cause], ['No token: the function of the client failed', cause]);
  for (const text of ['', 'a b', 'a\r\nb']) {
    const { message } = await errorOf(createClient({ url, token: () => text }).me());
    t.equal(message, 'The token is empty, or has illegal characters');
  }
  const silent = createClient({ url, token: () => new Promise(() => {}), timeoutMs: 300 });
  t.match((await errorOf(silent.me())).message, /did not answer within 300 ms/);
  t.equal(requests(), 3, 'no request without a token');
});

t.test('requests are sent by the fetch of the caller', async (t) => {
  const { url, requests } = await scriptedServer(t, [json(OK)]);
  const asked: string[] = [];
  const own: typeof fetch = (to, init) => {
    asked.push(String(to));
    return fetch(String(to).replace('https://prices.example.com', url), init);
  };
  const client = createClient({ url: 'https://prices.example.com', key: 'key', fetch: own });
  t.equal((await client.prices('nickel')).revision, 'abcd.1');
  t.same([asked, requests()], [['https://prices.example.com/v3/prices/nickel'], 1]);
});

t.test('a file that breaks off, takes too long or is cancelled ends with an error', async (t) => {
  const begun =
    (then: (reply: ServerResponse) => void): Responder =>
    (reply) => {
      reply.writeHead(200, { 'content-type': 'text/csv; charset=utf-8' });
      reply.write('code,date\r\n', () => then(reply));
    };
  const cut = await serving(t, [begun((reply) => reply.destroy())]);
  const broken = await cut.client.file('nickel', 'csv');
  const error = await errorOf(broken.bytes());
  t.match(error.message, /sent a part of its answer only$/);
  t.equal(cut.requests(), 1, 'a part was handed on already');
  const open = await serving(t, [begun(() => {})]);
  const late = await open.client.file('nickel', 'csv', {}, { timeoutMs: 500 });
  t.match((await errorOf(late.bytes())).message, /did not answer within 500 ms/);
  const reason = new Error('the user left');
  const control = new AbortController();
  const left = await open.client.file('nickel', 'csv', {}, { signal: control.signal });
  control.abort(reason);
  await t.rejects(left.bytes(), reason);
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const watched = await serving(t, [begun((reply) => reply.on('close', resolve))]);
  await (await watched.client.file('nickel', 'csv')).body.cancel();
  await closed;
  const other = await serving(t, [json(OK)]);
  t.match((await errorOf(other.client.file('nickel', 'csv'))).message, /no answer of version 3/);
});

t.test('without a key, and with one in the address, nothing is sent', async (t) => {
  const { COMMODITY_PRICES_KEY, COMMODITY_PRICES_URL } = process.env;
  t.same([COMMODITY_PRICES_KEY, COMMODITY_PRICES_URL], [undefined, undefined]);
  const refusal = (options: Parameters<typeof createClient>[0]): string => {
    try {
      createClient(options);
      return 'a client';
    } catch (error) {
      return error instanceof PricesError ? error.message : String(error);
    }
  };
  t.match(refusal({}), /No API key; set COMMODITY_PRICES_KEY, or give key or token/);
  t.match(refusal({ key: 'a', token: 'b' }), /Give a key or a token, not both/);
  t.match(refusal({ token: 'a b' }), /illegal characters/);
  for (const url of [
    'https://cps_live_abc@prices.example.com',
    'https://prices.example.com/cps_live_abc',
    'https://prices.example.com/cps%5Flive%5Fabc',
    'https://prices.example.com/%63ps_live_abc%zz',
    'https://user:word@prices.example.com',
    'https://prices.example.com?key=x',
    'https://prices.example.com/#key=x',
    'prices.example.com',
    'ftp://prices.example.com',
    '',
  ]) {
    t.match(refusal({ url, key: 'key' }), /^url must be http\(s\):\/\/host/, url);
    t.notMatch(refusal({ url, key: 'key' }), /cps_live|word/, url);
  }
  for (const key of ['a b', 'a\r\nb', 'é']) t.match(refusal({ key }), /illegal characters/);
  for (const url of ['http://[::1]:3000', 'https://a.example.com/v3/prices/', 'HTTP://A/x/']) {
    t.equal(refusal({ url, key: 'key' }), 'a client', url);
  }
  const { client, requests } = await serving(t, [json(OK)]);
  for (const call of [
    client.changes({ after: 'cps_live_abc' }),
    client.search('eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.x'),
    client.prices('cps_live_abc' as 'nickel'),
  ]) {
    const { message } = await errorOf(call);
    t.equal(message, 'An address must not hold a key');
  }
  t.equal(requests(), 0);
});
