import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { ECHOES, KEYS, partsOf, TOKEN } from '../clients/scripted-server.ts';
import { assistant, commandEnv, mcp } from '../support/process/assistant.ts';
import { prices } from '../support/process/programs.ts';

type Responder = (reply: ServerResponse, request: IncomingMessage) => void;

const json =
  (body: unknown, headers: Record<string, string> = {}, status = 200): Responder =>
  (reply) => {
    reply.writeHead(status, { 'content-type': 'application/json', ...headers });
    reply.end(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body));
  };

const PROBLEM = { 'content-type': 'application/problem+json' };
const HTML = { 'content-type': 'text/html' };

const refused = (status: number, code: string, headers: Record<string, string> = {}): Responder =>
  json(
    { status, code, detail: `refused as ${code}`, errors: [{ code: 'a' }], requestId: 'r-1' },
    { ...PROBLEM, ...headers },
    status,
  );

const OK = json({ data: [{ slug: 'nickel' }] });

/** A server whose next requests get these answers, the last one for ever. */
let answers: readonly Responder[] = [OK];
let requests: IncomingMessage[] = [];
const server = createServer((request, reply) => {
  const answer = answers[Math.min(requests.length, answers.length - 1)];
  requests.push(request);
  request.resume().on('end', () => answer?.(reply, request));
}).listen(0, '127.0.0.1');
await once(server, 'listening');
t.teardown(() => {
  server.closeAllConnections();
  server.close();
});
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const env = { COMMODITY_PRICES_URL: url, COMMODITY_PRICES_KEY: 'the-key' };

/** Calls that take long wait for the deadline of this one. */
const patient = await assistant(t, env, mcp('--timeout', '60'));
const withTimeout = await assistant(t, env, mcp('--timeout', '3'));

/** Calls a tool while the server returns these answers. */
async function ask(
  given: readonly Responder[],
  { tool = 'list_markets', more = {}, by = patient }: Ask = {},
) {
  answers = given;
  requests = [];
  return by.ask(tool, more);
}
interface Ask {
  readonly tool?: string;
  readonly more?: Readonly<Record<string, unknown>>;
  readonly by?: typeof patient;
}

const SOON = { 'retry-after': '0' };

t.test(
  '429, 502, 503 and 504 are tried again, at most three times, with the key in its header',
  async (t) => {
    const passing = [
      refused(429, 'rate_limited', SOON),
      refused(503, 'overloaded', SOON),
      json('<html>', { ...HTML, ...SOON }, 503),
      OK,
    ];
    const foreign = [502, 504].map((status) => json('<html>', { ...HTML, ...SOON }, status));
    t.equal((await ask([...foreign, OK])).isError, false);
    t.equal(requests.length, 3);
    const { data, isError } = await ask(passing);
    t.same([isError, data.markets, requests.length], [false, [{ slug: 'nickel' }], 4]);
    for (const { headers, url: address } of requests) {
      t.match(headers, { 'x-api-key': 'the-key', accept: /application\/json/ });
      t.notMatch(address, 'the-key');
    }
    const failed = await ask([refused(503, 'overloaded', SOON)]);
    t.match(failed.data.error, {
      status: 503,
      code: 'overloaded',
      message: 'refused as overloaded',
    });
    t.same([failed.isError, requests.length], [true, 4]);
  },
);

t.test('no other refusal is tried again, and what the service says is handed on', async (t) => {
  for (const status of [400, 401, 403, 500]) {
    const { data, isError } = await ask([refused(status, 'a_code')]);
    const errors = [{ code: 'a' }];
    t.same([isError, requests.length], [true, 1], String(status));
    t.same(data.error, {
      message: 'refused as a_code',
      status,
      code: 'a_code',
      errors,
      requestId: 'r-1',
    });
  }
  const { data } = await ask([refused(404, 'not_found')]);
  t.match(data.error.message, /refused as not_found .*\/v3\/prices.* for version 3 of the service/);
});

t.test('Retry-After is bounded by the deadline of the call, whatever it says', async (t) => {
  for (const after of ['86400', '999999999', new Date(Date.now() + 3_600_000).toUTCString()]) {
    const { data } = await ask([refused(429, 'rate_limited', { 'retry-after': after })]);
    t.match(data.error, { code: 'rate_limited', message: /repeat the call after \d+ seconds/ });
    t.equal(requests.length, 1, after);
  }
  const past = new Date(Date.now() - 60_000).toUTCString();
  for (const after of ['-5', 'soon', '', 'Wed, 99 Foo 2026', '1e9', past]) {
    const { isError } = await ask([refused(503, 'overloaded', { 'retry-after': after }), OK]);
    t.same([isError, requests.length], [false, 2], after);
  }
  const { isError } = await ask([refused(503, 'overloaded'), OK]);
  t.same([isError, requests.length], [false, 2]);
});

/** Most milliseconds after its deadline that a call may end on a busy machine. */
const LATE_MS = 1_500;

t.test('a server that says nothing, and one that never ends, time out', async (t) => {
  const slow: Responder = (reply) => {
    reply.writeHead(200, { 'content-type': 'application/json' });
    const timer = setInterval(() => reply.write(' '), 50);
    reply.on('close', () => clearInterval(timer));
  };
  for (const answer of [() => {}, slow, refused(503, 'overloaded', { 'retry-after': '1' })]) {
    const start = performance.now();
    const { data, isError } = await ask([answer], { by: withTimeout });
    const tookMs = performance.now() - start;
    t.ok(isError);
    t.ok(tookMs < 3_000 + LATE_MS, `${tookMs} ms`);
    t.match(data.error.message, /did not answer within 3 seconds|repeat the call after 1 seconds/);
  }
});

const LONG = `<html>${'x'.repeat(1_000)}</html>`;

const part =
  (headers: Record<string, string>): Responder =>
  (reply) => {
    reply.writeHead(200, { 'content-type': 'application/json', ...headers });
    reply.write('{"data": [{"mid": 1', () => reply.destroy());
  };
const huge: Responder = (reply) => {
  reply.writeHead(200, { 'content-type': 'application/json' });
  const fill = (): void => {
    while (reply.write('[0],'.repeat(100_000)));
  };
  reply.on('drain', fill);
  fill();
};

const STRANGE: readonly (readonly [what: string, answer: Responder, output: RegExp])[] = [
  ['a page of a proxy', json(LONG, HTML), /answered 200 without the JSON of .* version 3/],
  ['a page as refusal', json(LONG, HTML, 500), /answered 500 without the JSON/],
  ['JSON that ends early', json('{"data": [{"mid": 1'), /200 without the JSON/],
  ['another shape', json({ prices: [LONG] }), /200 without the JSON/],
  ['a list', json([1]), /200 without the JSON/],
  ['null', json(null), /200 without the JSON/],
  ['not UTF-8', json(Buffer.from('{"data":["\xff"]}', 'latin1')), /200 without the JSON/],
  ['a redirect', json('', { location: '/elsewhere' }, 302), /302 without the JSON/],
  ['a part of a length', part({ 'content-length': '100' }), /connection to http\S+ failed: /],
  ['a part in chunks', part({}), /connection to http\S+ failed: /],
  ['no answer', (reply: ServerResponse) => reply.destroy(), /connection to http\S+ failed: /],
  ['without end', huge, /200 without the JSON/],
];

t.test('an answer that is incomplete or not of version 3 is an error', async (t) => {
  for (const [what, answer, output] of STRANGE) {
    const { data, isError } = await ask([answer]);
    t.equal(isError, true, what);
    t.match(data.error.message, output, what);
    t.ok(data.error.message.length < 300, what);
    t.same(Object.keys(data), ['notice', 'error'], `${what}: no half of a table`);
    t.equal(requests.length, 1, what);
  }
});

t.test('an answer without $metadata, or with more than was asked for, is an error', async (t) => {
  const more = { market: 'nickel', points: 200 };
  const bare = await ask([json({ data: [] })], { tool: 'get_prices', more });
  t.match(bare.data.error.message, /200 without the JSON/);
  const record = { code: 'A', currency: null, unitOfMeasure: { symbol: '%' }, series: [] };
  const $metadata = { revision: 'abcd.1', warnings: [], nextCursor: null };
  const two = await ask([json({ $metadata, data: [record, record] })], {
    tool: 'get_prices',
    more,
  });
  t.match(two.data.error.message, /more than was asked for/);
});

t.test('digits that no double holds pass unchanged, wherever they stand', async (t) => {
  const digits = '0.12345678901234567890';
  const point = `{"date":"2026-01-02","low":-0,"mid":${digits},"high":1e21}`;
  const text =
    '{"$metadata":{"revision":"abcd.1","warnings":[],"nextCursor":null},"data":[{"code":"A",' +
    `"currency":null,"unitOfMeasure":{"symbol":"%"},"series":[${point}]}]}`;
  const { data } = await ask([json(text)], { tool: 'get_prices', more: { market: 'nickel' } });
  t.match(data.prices[0].points[0], { low: '-0', mid: digits, high: '1e21' });
});

t.test('a text of a refusal hides nothing', async (t) => {
  const detail = `a \u202Eb \u{E0041} </system> cps_live_${'a'.repeat(48)}`;
  const { text, data } = await ask([json({ detail, code: 'x' }, PROBLEM, 400)]);
  t.equal(data.error.message, 'a \\u{202e}b \\u{e0041} </system> [secret]');
  t.notMatch(text, /[<>&\p{Cf}]/u);
});

t.test('no result of a tool shows the credential, whatever a server echoes', async (t) => {
  for (const key of [...KEYS, TOKEN]) {
    const name = key === TOKEN ? 'COMMODITY_PRICES_TOKEN' : 'COMMODITY_PRICES_KEY';
    const given = { ...env, COMMODITY_PRICES_KEY: '', [name]: key };
    const own = await assistant(t, given, mcp('--timeout', '3'));
    const good: Responder = (reply, { headers }) =>
      json({
        data: [{ slug: 'nickel', name: `N ${headers['x-api-key'] ?? headers.authorization}` }],
      })(reply, {} as IncomingMessage);
    for (const [what, answer] of Object.entries({ ...ECHOES, good })) {
      const { text } = await ask([answer], { by: own });
      const seen = text.replaceAll('\\\\', '\\').toLowerCase();
      const shown = partsOf(key).filter((part) => seen.includes(part.toLowerCase()));
      t.same(shown, [], `${what}: ${text}`);
      if (what === 'problem' || what === 'good') t.match(text, '[secret]', what);
    }
    for (const part of partsOf(key)) t.notOk(own.stderr().includes(part));
  }
});

t.test('a call that is cancelled closes its connection, and the next one works', async (t) => {
  const controller = new AbortController();
  const closed = new Promise<void>((resolve) => {
    answers = [
      (reply) => {
        reply.on('close', resolve);
        controller.abort();
      },
    ];
    requests = [];
  });
  await t.rejects(patient.ask('list_markets', {}, controller.signal));
  await closed;
  t.equal((await ask([OK])).isError, false);
  t.equal(requests.length, 1);
});

/** Starts `mcp` without a client of the protocol. */
function start(more: Readonly<Record<string, string>> = {}) {
  const { command, args } = mcp();
  const child = spawn(command, [...args], {
    cwd: tmpdir(),
    env: commandEnv({ ...env, ...more }),
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    child.emit('said');
  });
  const exit = once(child, 'exit');
  const send = (id: number | null, method: string, params: object = {}): void => {
    const message = { jsonrpc: '2.0', ...(id === null ? {} : { id }), method, params };
    child.stdin.write(`${JSON.stringify(message)}\n`);
  };
  const until = async (text: string): Promise<void> => {
    while (!output.includes(text)) await once(child, 'said');
  };
  return { child, send, until, exit, stdout: () => output };
}

/** Starts it, and has a call under way that the server does not answer. */
async function calling() {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>();
  answers = [
    (reply) => {
      reply.on('close', resolve);
      onAsked();
    },
  ];
  requests = [];
  const one = start();
  one.send(1, 'initialize', {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  });
  await one.until('"id":1');
  one.send(null, 'notifications/initialized');
  one.send(2, 'tools/call', { name: 'list_markets', arguments: {} });
  await asked;
  return { ...one, closed };
}

t.test('it ends with 0 by a signal, a call under way or not', async (t) => {
  for (const end of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    const { child, closed, exit, stdout } = await calling();
    child.kill(end);
    t.same(await exit, [0, null], end);
    await closed;
    const lines = stdout().trimEnd().split('\n');
    t.same(
      lines.map((line) => JSON.parse(line).jsonrpc),
      lines.map(() => '2.0'),
      `${end}: nothing but the protocol on standard output`,
    );
  }
});

t.test('it ends with 0 at the end of the input, and cancels calls under way', async (t) => {
  const { child, closed, exit } = await calling();
  child.stdin.end();
  t.same(await exit, [0, null]);
  await closed;
  const { command, args } = mcp();
  for (const input of ['"$0" "$@" < empty', '"$0" "$@" < /dev/null', ': | "$0" "$@"']) {
    const { status, stdout, stderr } = spawnSync('sh', ['-c', input, command, ...args], {
      cwd: t.testdir({ empty: '' }),
      env: commandEnv(env),
      encoding: 'utf8',
    });
    t.same([status, stdout], [0, ''], input);
    t.match(stderr, /^commodity-prices: serving MCP [^\n]*\n$/);
  }
});

t.test('a line that is no message does not end it', async (t) => {
  const { child, send, until, exit } = start();
  child.stdin.write('this is no JSON\n\n{"id":6}\n[]\n');
  send(8, 'ping');
  await until('"id":8');
  child.stdin.end();
  t.same(await exit, [0, null]);
});

t.test('a line of 11 MB ends it, so that memory is bounded', async (t) => {
  const { child, exit, stdout } = start();
  child.stdin.on('error', () => {});
  child.stdin.write('x'.repeat(11_000_000));
  t.same(await exit, [0, null]);
  t.equal(stdout(), '');
});

t.test('the key may come from a file, whose faults name the variable', async (t) => {
  const folder = t.testdir({ key: 'from-the-file\n', empty: '' });
  const given = (name: string, more: Readonly<Record<string, string>> = {}) => ({
    COMMODITY_PRICES_URL: url,
    COMMODITY_PRICES_KEY_FILE: join(folder, name),
    ...more,
  });
  const by = await assistant(t, given('key', { COMMODITY_PRICES_KEY: '' }));
  t.equal((await ask([OK], { by })).isError, false);
  t.equal(requests[0]?.headers['x-api-key'], 'from-the-file');
  const wrong = [
    [given('none'), /COMMODITY_PRICES_KEY_FILE: cannot read .*none: there is no such file/],
    [given('empty'), /COMMODITY_PRICES_KEY_FILE: .* is empty/],
    [
      given('key', { COMMODITY_PRICES_KEY: 'a' }),
      /set only one of COMMODITY_PRICES_KEY_FILE, COMMODITY_PRICES_KEY/,
    ],
  ] as const;
  for (const [settings, output] of wrong) {
    const { code, stdout, stderr } = await prices(t, settings, 'mcp');
    t.same([code, stdout], [2, ''], stderr);
    t.match(stderr, output);
  }
});

t.test('a bearer token replaces the key, and its file is read for each call', async (t) => {
  const folder = t.testdir({ token: 'first.of.issuer\n' });
  const file = join(folder, 'token');
  const given = { COMMODITY_PRICES_URL: url, COMMODITY_PRICES_KEY: '' };
  const by = await assistant(t, { ...given, COMMODITY_PRICES_TOKEN_FILE: file });
  const sent = async () => {
    t.equal((await ask([OK], { by })).isError, false);
    const { authorization, 'x-api-key': key } = requests[0]?.headers ?? {};
    return [authorization, key];
  };
  t.same(await sent(), ['Bearer first.of.issuer', undefined]);
  await writeFile(file, 'second.of.issuer\n');
  t.same(await sent(), ['Bearer second.of.issuer', undefined]);
  await writeFile(file, '');
  const { isError, data } = await ask([OK], { by });
  t.same([isError, requests.length], [true, 0]);
  t.match(data.error.message, /^COMMODITY_PRICES_TOKEN_FILE: .* is empty$/);
  const plain = await assistant(t, { ...given, COMMODITY_PRICES_TOKEN: 'a.b.c' });
  t.equal((await ask([OK], { by: plain })).isError, false);
  t.equal(requests[0]?.headers.authorization, 'Bearer a.b.c');
  const both = { COMMODITY_PRICES_KEY: 'a', COMMODITY_PRICES_TOKEN: 'b' };
  for (const [more, output] of [
    [both, /set only one of COMMODITY_PRICES_KEY and COMMODITY_PRICES_TOKEN/],
    [{ COMMODITY_PRICES_TOKEN: 'a b' }, /COMMODITY_PRICES_TOKEN: holds a space/],
    [{ COMMODITY_PRICES_TOKEN_FILE: join(folder, 'none') }, /there is no such file/],
  ] as const) {
    const { code, stdout, stderr } = await prices(t, { ...given, ...more }, 'mcp');
    t.same([code, stdout], [2, ''], stderr);
    t.match(stderr, output);
  }
});

t.test('a missing key and a key in the address are refused before any request', async (t) => {
  requests = [];
  const key = `cps_live_${'a'.repeat(48)}`;
  const { host } = new URL(url);
  const hidden = key.replaceAll('_', '%5F');
  const wrong = [
    [
      { COMMODITY_PRICES_KEY: '' },
      [],
      /no API key: set the environment variable COMMODITY_PRICES_KEY/,
    ],
    [{ COMMODITY_PRICES_KEY: 'a b' }, [], /COMMODITY_PRICES_KEY: holds a space/],
    [{ COMMODITY_PRICES_KEY: 'a\nb' }, [], /COMMODITY_PRICES_KEY: holds a space/],
    [{ COMMODITY_PRICES_URL: `${url}/${key}` }, [], /the address holds a credential/],
    [{ COMMODITY_PRICES_URL: `${url}/${hidden}` }, [], /the address holds a credential/],
    [{ COMMODITY_PRICES_URL: `http://user:word@${host}` }, [], /the address holds a credential/],
    [{ COMMODITY_PRICES_URL: `${url}/?x-api-key=1` }, [], /the address holds a credential/],
    [{ COMMODITY_PRICES_URL: 'prices.example.com' }, [], /must be an address such as https:/],
    [{ COMMODITY_PRICES_URL: 'ftp://example.com' }, [], /must be an address such as https:/],
    [{}, ['--timeout', '0'], /--timeout: .* is not a whole number from 1 to 600/],
    [{}, ['--timeout', '1e9'], /--timeout: .* is not a whole number from 1 to 600/],
  ] as const;
  const check = async ([given, args, output]: (typeof wrong)[number]): Promise<void> => {
    const { code, stdout, stderr } = await prices(t, { ...env, ...given }, 'mcp', ...args);
    t.same([code, stdout], [2, ''], stderr);
    t.match(stderr, output);
    t.notMatch(stderr, /cps_live_a|\n {4}at /);
  };
  await Promise.all(wrong.map(check));
  t.equal(requests.length, 0);
});
