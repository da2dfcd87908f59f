import fc from 'fast-check';
import type { SpecifiedMarket } from '../prices/specification.ts';
import { type FuzzedBody, legalBody, type RequestBody, type ValuesByFilter } from './bodies.ts';

const MALFORMED = { code: 'malformed_json' };

/** Texts that are no JSON, whatever a lenient reader would make of them. */
const NO_JSON = [
  ...['', ' ', '\n', '{', '}', '{}}', '{} {}', '[', 'null null', "{'filters':{}}", '{filters:{}}'],
  ...['{"filters":{},}', '{"filters":{}} // all', '/* all */ {}', '{"options":{"strict":True}}'],
  ...[
    'NaN',
    'undefined',
    '{"filters":undefined}',
    '01',
    '+1',
    '.5',
    '1.',
    '0x10',
    '"\t"',
    '"\\x41"',
  ],
  ...['"\\u12"', '{"a":1e}', '\u2028{}', '\u00a0{}', '\ufeff{}', '{}\u0000', '{"filters":{}'],
];

/** A member that is named again, in every disguise: escapes, and white space before the colon. */
const twice = (body: RequestBody): fc.Arbitrary<string> => {
  const spaces = fc.string({ unit: fc.constantFrom(' ', '\n', '\t', '\r'), maxLength: 80 });
  const names = fc.constantFrom('"filters"', '"\\u0066ilters"', '"filter\\u0073"');
  return fc
    .tuple(names, names, spaces, spaces)
    .map(
      ([one, other, before, after]) =>
        `{${one}${before}:${JSON.stringify(body.filters)},${other}${after}:{}}`,
    );
};

const nested = fc
  .integer({ min: 9, max: 20_000 })
  .chain((depth) =>
    fc.constantFrom(
      `${'['.repeat(depth)}${']'.repeat(depth)}`,
      `{"filters":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`,
      '['.repeat(depth),
      '{"a":'.repeat(depth),
    ),
  );

/** Encodings that are not UTF-8. */
const otherwiseEncoded = (body: RequestBody): fc.Arbitrary<Buffer> => {
  const json = JSON.stringify(body);
  const utf16 = Buffer.from(json, 'utf16le');
  return fc.constantFrom(
    utf16,
    Buffer.from(utf16).swap16(),
    Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]),
    Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(json)]),
    Buffer.from('{"filters":{"regions":["\xc3\x28"]}}', 'latin1'),
    Buffer.from('{"filters":{"regions":["\xed\xa0\x80"]}}', 'latin1'),
    Buffer.from('{"filters":{"regions":["\xc0\x80"]}}', 'latin1'),
    Buffer.from('{"filters":{"regions":["Zürich"]}}', 'latin1'),
  );
};

/** Bodies that are not JSON as the contract takes it, and must be called so. */
export const brokenJson = (
  market: SpecifiedMarket,
  values: ValuesByFilter,
): fc.Arbitrary<FuzzedBody> =>
  legalBody(market, values)
    .chain((body) =>
      fc.oneof(
        fc.constantFrom(...NO_JSON).map((text) => Buffer.from(text)),
        twice(body).map((text) => Buffer.from(text)),
        nested.map((text) => Buffer.from(text)),
        otherwiseEncoded(body),
        fc.nat().map((cut) => {
          const json = Buffer.from(JSON.stringify(body));
          return json.subarray(0, cut % json.length);
        }),
      ),
    )
    .map((bytes) => ({ what: 'no JSON', bytes, broken: MALFORMED }));

/** Legal bodies that are sent as something else, or are too large. */
export const wronglySent = (
  market: SpecifiedMarket,
  values: ValuesByFilter,
): fc.Arbitrary<FuzzedBody> =>
  legalBody(market, values).chain((body) => {
    const bytes = Buffer.from(JSON.stringify(body));
    const types = ['text/plain', 'application/xml', 'application/jsonp', 'x', 'application/json,'];
    return fc.oneof(
      fc
        .constantFrom(...types, 'application/json; charset=utf-16', 'multipart/form-data', '*/*')
        .map((type) => ({
          what: type,
          bytes,
          type,
          broken: { code: 'unsupported_media_type' },
        })),
      fc.integer({ min: 131_072, max: 300_000 }).map((size) => ({
        what: 'too large',
        bytes: Buffer.concat([bytes, Buffer.alloc(size, ' ')]),
        broken: { code: 'body_too_large' },
      })),
    );
  });
