import fc from 'fast-check';
import { OPTION_NAMES } from '../../../src/contract/schemas/options.ts';
import { SPECIFIED, type SpecifiedMarket } from '../prices/specification.ts';
import {
  type FuzzedBody,
  legalBody,
  type Members,
  type RequestBody,
  type ValuesByFilter,
} from './bodies.ts';

type Broken = Required<Pick<FuzzedBody, 'what' | 'broken'>> & { readonly body: unknown };
type Breaker = (body: RequestBody, market: SpecifiedMarket) => fc.Arbitrary<Broken>;

const broken = (code: string, pointer: string | undefined, body: unknown): Broken => ({
  what: code,
  broken: pointer === undefined ? { code } : { code, pointer },
  body,
});

/** A copy with one member more, also where its name is `__proto__`. */
const withMember = (members: Members, name: string, value: unknown): Members =>
  Object.fromEntries([...Object.entries(members), [name, value]]);

const without = (members: Members, ...names: string[]): Members =>
  Object.fromEntries(Object.entries(members).filter(([name]) => !names.includes(name)));

const UNUSUAL_NAMES = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'length',
];
const MISSPELT = ['dateform', 'DateFrom', 'date_to', 'product', 'code', 'offset', 'currencies'];
const LEGAL: readonly string[] = [
  ...['filters', 'options', 'dateFrom', 'dateTo', 'codes'],
  ...OPTION_NAMES,
];
const unusualName = fc.oneof(fc.constantFrom(...UNUSUAL_NAMES, ...MISSPELT), fc.string());

/** Members of lists that a body may lack; breaking a rule of codes needs them gone. */
const alone = (filters: Members): Members => {
  const { dateFrom, dateTo } = filters;
  return { ...(dateFrom ? { dateFrom } : {}), ...(dateTo ? { dateTo } : {}) };
};

const unknownMember: Breaker = (body) =>
  fc
    .tuple(fc.constantFrom('', 'filters', 'options'), unusualName, fc.jsonValue({ maxDepth: 1 }))
    .filter(([, name]) => !LEGAL.includes(name))
    .filter(([, name]) => !SPECIFIED.some((each) => each.filters.includes(name)))
    .map(([part, name, value]) => {
      const pointer = /^\w+$/.test(name) && name.length < 60 ? `/${name}` : undefined;
      const at = pointer === undefined ? undefined : `${part && '/'}${part}${pointer}`;
      if (part === '') return broken('unknown_field', at, withMember({ ...body }, name, value));
      const members = withMember(body[part as keyof RequestBody], name, value);
      return broken('unknown_field', at, { ...body, [part]: members });
    });

const foreignFilter: Breaker = (body, market) =>
  fc
    .constantFrom(...new Set(SPECIFIED.flatMap((each) => each.ownFilters)))
    .filter((name) => !market.filters.includes(name))
    .map((name) =>
      broken('unsupported_filter', `/filters/${name}`, {
        ...body,
        filters: { ...body.filters, [name]: [] },
      }),
    );

const notA = (kind: string) =>
  fc
    .constantFrom<unknown>(null, 'text', 0, 1, 1e300, true, false, [], {}, [[]], [{}])
    .filter((value) => {
      if (kind === 'list') return !Array.isArray(value);
      if (kind === 'object')
        return typeof value !== 'object' || value === null || Array.isArray(value);
      return typeof value !== kind;
    });

const wrongType: Breaker = (body, market) =>
  fc
    .constantFrom(
      ...['body', 'filters', 'options', 'dateFrom', 'dateTo', 'includeSeries', 'strict'],
      ...market.filters,
      'item',
    )
    .chain((what) => {
      const set = (kind: string, pointer: string, make: (value: unknown) => unknown) =>
        notA(kind).map((value) => broken('wrong_type', pointer, make(value)));
      const filter = (name: string, value: unknown) => ({
        ...body,
        filters: { ...without(body.filters, 'codes'), [name]: value },
      });
      if (what === 'body') return set('object', '', (value) => value);
      if (what === 'filters' || what === 'options') {
        return set('object', `/${what}`, (value) => ({ ...body, [what]: value }));
      }
      if (what.startsWith('date')) return set('string', `/filters/${what}`, (v) => filter(what, v));
      if (what === 'item') {
        return set('string', '/filters/regions/0', (value) => filter('regions', [value]));
      }
      if (what === 'includeSeries' || what === 'strict') {
        return set('boolean', `/options/${what}`, (value) => ({
          ...body,
          options: { ...body.options, [what]: value },
        }));
      }
      return set('list', `/filters/${what}`, (value) => filter(what, value));
    });

const NO_DAYS = [
  ...['', ' ', 'today', 'infinity', '-infinity', 'epoch', 'now', '2024-1-1', '20240101'],
  ...['2023-02-29', '1900-02-29', '2024-02-30', '2024-13-01', '2024-00-10', '2024-04-31'],
  ...['2024-01-00', '2024-01-32', '2024-01-01T00:00:00Z', '2024-01-01 ', ' 2024-01-01'],
  ...['+002024-01-01', '-2024-01-01', '２０２４-01-01', '٢٠٢٤-٠١-٠١', '2024/01/01', '01-02-2024'],
  ...['2024-01-01\n', '2024-W01-1', '24:00', '2024-02-29-', 'J2451187', '99999-01-01'],
];
const NO_YEARS = [
  '0000-01-01',
  '0001-01-01',
  '1582-10-10',
  '1799-12-31',
  '2200-01-01',
  '9999-12-31',
];

const badDay: Breaker = (body) =>
  fc
    .tuple(fc.constantFrom('dateFrom', 'dateTo'), fc.constantFrom(...NO_DAYS, ...NO_YEARS))
    .map(([name, day]) =>
      broken(NO_YEARS.includes(day) ? 'out_of_range' : 'invalid_format', `/filters/${name}`, {
        ...body,
        filters: { ...body.filters, [name]: day },
      }),
    );

const dateOrder: Breaker = (body) =>
  fc.constant(
    broken('date_order', '/filters/dateFrom', {
      ...body,
      filters: { ...body.filters, dateFrom: '2026-03-02', dateTo: '2026-03-01' },
    }),
  );

const list = (
  body: RequestBody,
  market: SpecifiedMarket,
  code: string,
  items: readonly unknown[],
) =>
  fc.constantFrom('codes', ...market.filters).map((name) => {
    const at = items.length === 1 ? `/filters/${name}/0` : `/filters/${name}`;
    const filters = { ...alone(body.filters), [name]: items };
    return broken(code, at, { ...body, filters });
  });

const badItem: Breaker = (body, market) =>
  fc.oneof(
    list(body, market, 'too_long', ['x'.repeat(129)]),
    list(body, market, 'too_long', ['😀'.repeat(129)]),
    list(body, market, 'too_long', [`e${'\u0301'.repeat(128)}`]),
    fc
      .constantFrom('\u0000', '\u0001', '\t', '\n', '\u007f', '\u0085', '\ud800', '\udfff')
      .chain((each) => list(body, market, 'invalid_characters', [`Nickel${each}`])),
    fc.constantFrom('').chain((each) => list(body, market, 'invalid_format', [each])),
  );

const badLength: Breaker = (body, market) =>
  fc.oneof(
    list(body, market, 'too_many_items', Array(501).fill('CP-XX-0001')),
    fc.constantFrom(...market.filters).map((name) =>
      broken('too_many_items', `/filters/${name}`, {
        ...body,
        filters: { ...without(body.filters, 'codes'), [name]: Array(201).fill('x') },
      }),
    ),
    fc.constant(
      broken('too_few_items', '/filters/codes', {
        ...body,
        filters: { ...body.filters, codes: [] },
      }),
    ),
  );

const codesExclusive: Breaker = (body, market) =>
  fc.constantFrom(...market.filters).map((name) =>
    broken('codes_exclusive', `/filters/${name}`, {
      ...body,
      filters: { ...without(body.filters, 'codes'), codes: ['x'], [name]: ['y'] },
    }),
  );

const BREAKERS = [
  ...[unknownMember, foreignFilter, wrongType, badDay],
  ...[dateOrder, badItem, badLength, codesExclusive],
];

/** Legal bodies in which one rule was broken on purpose. */
export const oneRuleBroken = (
  market: SpecifiedMarket,
  values: ValuesByFilter,
): fc.Arbitrary<FuzzedBody> =>
  fc
    .tuple(legalBody(market, values), fc.constantFrom(...BREAKERS))
    .chain(([body, breaker]) => breaker(body, market))
    .map(({ body, ...rest }) => ({ ...rest, bytes: Buffer.from(JSON.stringify(body)) }));
