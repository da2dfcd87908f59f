import t from 'tap';
import { serviceWithoutDatabase } from '../../support/http/service-without-database.ts';

let service: Awaited<ReturnType<typeof serviceWithoutDatabase>>;
t.before(async () => {
  service = await serviceWithoutDatabase(t);
});

/** Bodies as sent, each with a pattern of the error detail. */
const refuses = (
  title: string,
  cases: Readonly<Record<string, readonly [string | Buffer, RegExp]>>,
) =>
  t.test(title, async (t) => {
    for (const [name, [body, detail]] of Object.entries(cases)) {
      const { status, json } = await service.send(body);
      t.equal(status, 400, name);
      t.equal(json.code, 'malformed_json', name);
      t.match(json.detail, detail, name);
      t.equal(json.errors, undefined, name);
    }
  });

const NOT_JSON = /^The body is not valid JSON$/;
const TWICE = /names one member twice/;
const DEEP = /nested deeper than 8 levels/;
const nested = (open: string, close: string, levels: number): string =>
  open.repeat(levels) + close.repeat(levels);

refuses('an empty body is not {}', {
  empty: ['', /empty; send at least \{\}/],
  blank: ['  \n', NOT_JSON],
});

refuses('invalid JSON is refused', {
  'a word': ['nickel', NOT_JSON],
  'cut short': ['{"filters":{"codes":["x"]}', NOT_JSON],
  'two documents': ['{} {}', NOT_JSON],
  'a comma at the end': ['{"filters":{},}', NOT_JSON],
  'single quotes': ["{'filters':{}}", NOT_JSON],
  'no quotes': ['{filters:{}}', NOT_JSON],
  'a comment': ['{} // x', NOT_JSON],
  NaN: ['{"filters":NaN}', NOT_JSON],
  'a hexadecimal number': ['{"filters":0x1}', NOT_JSON],
  'a line break in a text': ['{"filters":{"codes":["a\nb"]}}', NOT_JSON],
  'a NUL after it': ['{}\u0000', NOT_JSON],
  'a NUL inside it': ['{\u0000}', NOT_JSON],
  'a no-break space': ['{\u00a0}', NOT_JSON],
  'a broken escape': ['{"filters":{"codes":["\\x41"]}}', NOT_JSON],
  'a text without end': ['{"filters', NOT_JSON],
  'a backslash at the end': ['{"a\\', NOT_JSON],
});

refuses('a body is UTF-8 without a mark', {
  'a byte-order mark': ['\ufeff{}', /byte-order mark/],
  'UTF-16 with a mark': [Buffer.from('\ufeff{}', 'utf16le'), /not valid UTF-8/],
  'UTF-16 without': [Buffer.from('{}', 'utf16le'), NOT_JSON],
  'ISO 8859-1': [Buffer.from('{"filters":{"codes":["é"]}}', 'latin1'), /not valid UTF-8/],
  'half a letter': [Buffer.from([0x7b, 0x22, 0xc3, 0x22]), /not valid UTF-8/],
  'an overlong letter': [Buffer.from([0x22, 0xc0, 0xaf, 0x22]), /not valid UTF-8/],
  'a surrogate': [Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), /not valid UTF-8/],
});

refuses('no member is named twice in one object, however it is spelt', {
  'twice the same': ['{"filters":{},"filters":{}}', TWICE],
  'deeper in': ['{"filters":{"codes":["x"],"codes":["y"]}}', TWICE],
  'by an escape': ['{"filters":{},"\\u0066ilters":{}}', TWICE],
  'by escapes alone': ['{"\\u0061":1,"\\u0061":2}', TWICE],
  'a surrogate pair by an escape': ['{"📈":1,"\\ud83d\\udcc8":2}', TWICE],
  'with spaces before the colon': ['{"filters" :{},"filters"\n\t :{}}', TWICE],
  'with many spaces before the colon': [
    `{"filters"${' '.repeat(100)}:{},"filters"${' '.repeat(100)}:{}}`,
    TWICE,
  ],
  'with an escaped quote before': ['{"a\\"":1,"a\\"":2}', TWICE],
  'with a backslash at its end': ['{"a\\\\":1,"a\\\\":2}', TWICE],
  'after a value that looks like it': ['{"a":"a","b":["a",{"a":1}],"a":2}', TWICE],
  'of an empty name': ['{"":1,"":2}', TWICE],
  __proto__: ['{"__proto__":1,"__proto__":2}', TWICE],
});

refuses('a body is nested no deeper than eight levels', {
  'nine lists': [nested('[', ']', 9), DEEP],
  'nine objects': [`${'{"a":'.repeat(9)}1${'}'.repeat(9)}`, DEEP],
  'a hundred thousand': ['['.repeat(100_000), DEEP],
});

t.test('valid but suspicious JSON reaches the validation of the body', async (t) => {
  for (const body of [
    nested('[', ']', 8),
    '{"a":"{\\"b\\":1,\\"b\\":2}"}',
    '{"a":"[[[[[[[[[[[["}',
    '{"a":{"x":1},"b":{"x":1},"c":[{"x":1},{"x":1}]}',
    '{"a":["x:","x:"],"b":"\\\\"}',
    '{"A":1,"a":2}',
    '\r\n\t {"a" : 1 } \r\n',
  ]) {
    const { json } = await service.send(body);
    t.equal(json.code, 'validation_failed', body.slice(0, 40));
  }
});

t.test('a body that says its type in any usual way is read', async (t) => {
  for (const type of [
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'application/json; charset="utf-8"',
    'Application/JSON',
    'application/json; charset=utf8',
  ]) {
    const { status, json } = await service.send('{"a":1}', { 'content-type': type });
    t.same([status, json.code], [400, 'validation_failed'], type);
  }
  const { json } = await service.send('{"a":1}', { 'content-encoding': 'identity' });
  t.equal(json.code, 'validation_failed');
});

t.test('a market asked without any body is refused', async (t) => {
  const { status } = await service.request({ method: 'POST', url: '/v3/prices/nickel' });
  t.equal(status, 400);
});

t.test('an address with a broken escape is refused, as a problem with a request id', async (t) => {
  for (const url of ['/v3/prices/%', '/v3/prices/%zz', '/v3/prices/nickel%ff']) {
    const answer = await service.app.inject({ method: 'POST', url });
    t.equal(answer.statusCode, 400, url);
    t.equal(answer.headers['content-type'], 'application/problem+json; charset=utf-8');
    t.match(answer.json(), { code: 'malformed_request', status: 400 });
    t.equal(answer.headers['x-request-id'], answer.json().requestId);
  }
});
