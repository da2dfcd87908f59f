import t from 'tap';
import { principalOf, type TokenRules } from '../../src/auth/tokens/tokens.ts';
import { scopeClaimsOf } from '../../src/config/scope-claims.ts';
import { Problem } from '../../src/errors.ts';
import { recordFigures } from '../support/run/faults.ts';

const NOW = 1_800_000_000;
const RULES: TokenRules = {
  issuer: 'https://issuer.test',
  audience: 'prices',
  scopeClaims: scopeClaimsOf('scope,scp,scopes'),
  lifetimeMaxSeconds: 3_600,
  leewaySeconds: 30,
};
const GOOD = { iss: 'https://issuer.test', aud: 'prices', sub: 'a', exp: NOW + 600 };

let tried = 0;
t.teardown(() => recordFigures('F29', { tokens: tried }));

/** The code of the refusal, or ok. */
function verdict(claims: Record<string, unknown>, now = NOW): string {
  tried += 1;
  try {
    principalOf({ ...GOOD, ...claims }, RULES, now);
    return 'ok';
  } catch (error) {
    return error instanceof Problem ? error.code : 'a crash';
  }
}

t.test('a token is good until 30 seconds after it expired, to the second', async (t) => {
  t.equal(verdict({}, GOOD.exp + 29.999), 'ok');
  t.equal(verdict({}, GOOD.exp + 30), 'token_expired');
  t.equal(verdict({}, GOOD.exp + 31), 'token_expired');
});

t.test('a token is good from 30 seconds before nbf and iat, to the second', async (t) => {
  for (const claim of ['nbf', 'iat']) {
    t.equal(verdict({ [claim]: NOW + 30 }), 'ok', claim);
    t.equal(verdict({ [claim]: NOW + 30 }, NOW - 0.001), 'invalid_token', claim);
    t.equal(verdict({ [claim]: NOW + 31 }), 'invalid_token', claim);
    t.equal(verdict({ [claim]: NOW + 3_600 }), 'invalid_token', claim);
  }
});

t.test('a token that says when it was issued lives no longer than allowed', async (t) => {
  t.equal(verdict({ iat: NOW, exp: NOW + 3_600 }), 'ok');
  t.equal(verdict({ iat: NOW, exp: NOW + 3_601 }), 'invalid_token');
  t.equal(verdict({ exp: NOW + 36_000 }), 'ok', 'without iat its life is not known');
});

t.test('a token is said to have expired only when nothing else is wrong', async (t) => {
  const late = { exp: NOW - 600 };
  t.equal(verdict(late), 'token_expired');
  for (const wrong of [{ iss: 'x' }, { aud: 'x' }, { sub: '' }, { scope: 5 }, { nbf: NOW + 60 }]) {
    t.equal(verdict({ ...late, ...wrong }), 'invalid_token', JSON.stringify(wrong));
  }
});

t.test('iss is ours to the letter, and one text', async (t) => {
  for (const iss of [
    undefined,
    null,
    '',
    'https://issuer.test/',
    'HTTPS://ISSUER.TEST',
    ' https://issuer.test',
    ['https://issuer.test'],
    ['https://issuer.test', 'https://other.test'],
    { 0: 'https://issuer.test' },
  ]) {
    t.equal(verdict({ iss }), 'invalid_token', JSON.stringify(iss));
  }
});

t.test('aud is ours or a list with ours', async (t) => {
  t.equal(verdict({ aud: ['other', 'prices'] }), 'ok');
  for (const aud of [undefined, null, '', [], 'prices2', 'Prices', 'prices ', ['a'], 'a prices']) {
    t.equal(verdict({ aud }), 'invalid_token', JSON.stringify(aud));
  }
  for (const aud of [[['prices']], ['prices', 5], { prices: true }, 5, true]) {
    t.equal(verdict({ aud }), 'invalid_token', JSON.stringify(aud));
  }
});

t.test('exp is needed and, as nbf and iat, a whole number of seconds', async (t) => {
  const bad = [null, '1800000600', true, [], {}, NOW + 0.5, Number.POSITIVE_INFINITY, 1e300];
  for (const value of bad) {
    for (const claim of ['exp', 'nbf', 'iat']) {
      t.equal(verdict({ [claim]: value }), 'invalid_token', `${claim} ${JSON.stringify(value)}`);
    }
  }
  t.equal(verdict({ exp: undefined }), 'invalid_token');
  t.equal(verdict({ exp: Number.MAX_SAFE_INTEGER }), 'invalid_token');
  t.equal(verdict({ exp: 0 }), 'token_expired');
  t.equal(verdict({ exp: -1 }), 'token_expired');
});

t.test('sub is needed: a text that is not empty', async (t) => {
  for (const sub of [undefined, null, '', 5, [], ['a'], {}]) {
    t.equal(verdict({ sub }), 'invalid_token', JSON.stringify(sub));
  }
});

t.test('scopes are the union of scope, scp and scopes', async (t) => {
  const scopes = (claims: Record<string, unknown>) => [
    ...principalOf({ ...GOOD, ...claims }, RULES, NOW).scopes,
  ];
  t.same(scopes({}), []);
  t.same(scopes({ scope: '' }), []);
  t.same(scopes({ scope: 'prices:nickel  prices:copper openid' }), [
    'prices:nickel',
    'prices:copper',
    'openid',
  ]);
  t.same(scopes({ scp: 'a b' }), ['a', 'b']);
  t.same(scopes({ scopes: 'a b' }), ['a', 'b']);
  t.same(scopes({ scope: 'a', scp: ['b', 'a'], scopes: ['c d'] }), ['a', 'b', 'c d']);
  t.same(scopes({ scope: 'a\tb' }), ['a\tb'], 'only the space separates');
});

/** The scopes that a service with these claims reads, or the code of its refusal. */
function readBy(setting: string, claims: Record<string, unknown>): string[] | string {
  const rules = { ...RULES, scopeClaims: scopeClaimsOf(setting) };
  try {
    return [...principalOf({ ...GOOD, ...claims }, rules, NOW).scopes];
  } catch (error) {
    return error instanceof Problem ? error.code : 'a crash';
  }
}

t.test('scopes are read from the claims of the setting only', (t) => {
  const claims = {
    scope: 'prices:*',
    roles: ['prices:nickel'],
    permissions: ['prices:copper'],
    'https://prices.example.com/scopes': 'prices:cobalt',
  };
  t.same(readBy('roles', claims), ['prices:nickel']);
  t.same(readBy('roles,permissions', claims), ['prices:nickel', 'prices:copper']);
  t.same(readBy('https://prices.example.com/scopes', claims), ['prices:cobalt']);
  t.same(readBy('groups', claims), []);
  t.equal(readBy('roles', { roles: { name: 'prices:nickel' } }), 'invalid_token');
  t.end();
});

t.test('a scope without its prefix grants nothing, and a prefix is compared exactly', (t) => {
  const setting = 'scope=prices-api/,scp';
  const scope = 'prices-api/prices:nickel prices:copper other/prices:* Prices-API/prices:*';
  t.same(readBy(setting, { scope }), ['prices:nickel']);
  t.same(readBy(setting, { scope, scp: ['prices:cobalt'] }), ['prices:nickel', 'prices:cobalt']);
  t.same(readBy(setting, { scope: 'prices-api/prices-api/prices:*' }), ['prices-api/prices:*']);
  t.same(readBy('scope=api=1/', { scope: 'api=1/prices:*' }), ['prices:*']);
  t.end();
});

t.test('only a scope with the prefix of this service replaces a missing aud', (t) => {
  const scope = 'prices-api/prices:nickel';
  const { aud: _aud, ...none } = { ...GOOD, scope };
  const verdictOf = (setting: string, claims: Record<string, unknown>) => {
    const rules = { ...RULES, scopeClaims: scopeClaimsOf(setting) };
    try {
      return [...principalOf(claims, rules, NOW).scopes].join();
    } catch (error) {
      return error instanceof Problem ? error.code : 'a crash';
    }
  };
  t.equal(verdictOf('scope=prices-api/', none), 'prices:nickel');
  for (const [setting, claims] of [
    ['scope', none],
    ['scope=prices-api/', { ...none, scope: 'other-api/prices:*' }],
    ['scope=prices-api/', { ...none, scope: '' }],
    ['scope=prices-api/', { ...none, aud: 'another' }],
    ['scope=prices-api/', { ...none, aud: null }],
    ['scope=prices-api/', { ...none, aud: undefined }],
    ['roles=prices-api/,scope', none],
  ] as const) {
    t.equal(verdictOf(setting, claims), 'invalid_token', `${setting} ${JSON.stringify(claims)}`);
  }
  t.end();
});

t.test('scopes of another type, or more than 100 of them, make a token invalid', async (t) => {
  for (const bad of [null, 5, true, {}, [5], ['a', null], [['prices:*']]]) {
    for (const claim of ['scope', 'scp', 'scopes']) {
      t.equal(verdict({ [claim]: bad }), 'invalid_token', `${claim} ${JSON.stringify(bad)}`);
    }
  }
  t.equal(verdict({ scope: ['prices:*'] }), 'invalid_token', 'scope is a text');
  const many = (count: number) => Array.from({ length: count }, (_, index) => `s${index}`);
  t.equal(verdict({ scp: many(100) }), 'ok');
  t.equal(verdict({ scp: many(101) }), 'invalid_token');
  t.equal(verdict({ scope: many(60).join(' '), scp: many(60) }), 'invalid_token');
});
