import type { Scope } from '../catalog/scopes.ts';
import { allOf, Problem, type ProblemCode } from '../errors.ts';
import { maskedEncoded } from '../std/secrets.ts';

const KEY_CHALLENGE = 'ApiKey realm="prices"';

/**
 * A 401. RFC 6750, section 3.1: the challenge has no error if no credential was sent. The sentence
 * of a code depends only on the form of the request, so that it reveals nothing about keys.
 */
const unauthorized = (code: ProblemCode, detail: string, cause?: unknown): Problem => {
  const error = code === 'missing_credentials' ? '' : ', error="invalid_token"';
  const challenge = `Bearer realm="prices"${error}, ${KEY_CHALLENGE}`;
  return new Problem(code, detail, { headers: { 'www-authenticate': challenge }, cause });
};

/**
 * A request without a credential.
 * @param takesBasic the request may send an API key as the password of Basic authentication
 * @param url may contain a credential, which the response does not repeat
 */
export function missingCredentials(takesBasic: boolean, url: string): Problem {
  const basic = takesBasic ? ' or as the password of Basic, with any user name' : '';
  const inUrl = maskedEncoded(url) === url ? '' : `. ${IN_URL}`;
  return unauthorized(
    'missing_credentials',
    `Send an API key in the header x-api-key${basic}, or a token as ` +
      `"Authorization: Bearer <token>"${inUrl}`,
  );
}

const IN_URL =
  'The address contains an API key or a token, and is not read for one: revoke it if others have ' +
  'seen it';

/** The part of a request that holds an API key. */
export type KeyPlace = 'x-api-key' | 'password' | 'query';

const INVALID_KEYS: Readonly<Record<KeyPlace, string>> = {
  'x-api-key': 'The key in x-api-key is not a key of this service',
  password:
    'The password of Basic is not a key of this service: send an API key as the password, ' +
    'with any user name',
  query: 'The token in the address is not a calendar token of this service',
};

/** Unknown, mistyped and wrong keys in one place get the same response. */
export const invalidApiKey = (place: KeyPlace): Problem =>
  unauthorized('invalid_api_key', INVALID_KEYS[place]);

/** A calendar token at another address than its own. */
export const calendarTokenElsewhere = (): Problem =>
  new Problem(
    'insufficient_scope',
    'This is a calendar token: it opens GET /v3/calendar alone. Send an API key here',
    { headers: { 'www-authenticate': 'Bearer error="insufficient_scope"' } },
  );

const NEW_KEY = 'request a new one from the operator';

/** A valid key that has expired. */
export const expiredApiKey = (publicId: string, expiresAt: string): Problem =>
  unauthorized('api_key_expired', `The API key ${publicId} expired at ${expiresAt}: ${NEW_KEY}`);

/** A valid key that was revoked. */
export const revokedApiKey = (publicId: string): Problem =>
  unauthorized('api_key_revoked', `The API key ${publicId} was revoked: ${NEW_KEY}`);

/** Every invalid token gets the same response, unless it is an API key. `cause` is logged only. */
export const invalidToken = (cause?: unknown): Problem =>
  unauthorized(
    'invalid_token',
    'Authorization must be "Bearer <token>" with a token that this service trusts',
    cause,
  );

/** An API key in Authorization. Only the form is checked; no key is looked up. */
export const keyAsToken = (): Problem =>
  unauthorized(
    'invalid_token',
    'Authorization holds an API key: send it as x-api-key instead, without Authorization',
  );

/** A valid token that has expired. */
export const expiredToken = (): Problem =>
  unauthorized('token_expired', 'The token is valid, but has expired: request a new one');

/** A 400: with several credentials, the intended one is unknown. */
export const ambiguousCredentials = (): Problem =>
  new Problem(
    'ambiguous_credentials',
    'Send one credential, once: either x-api-key or Authorization',
  );

const OTHER_SCOPE = 'request it from the operator; GET /v3/me lists the scopes of this credential';

/** A 403 that names only the required scope. */
export const insufficientScope = (scope: Scope): Problem =>
  new Problem('insufficient_scope', `The scope ${scope} is needed here: ${OTHER_SCOPE}`, {
    headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scope}"` },
  });

/** A 403 for a request that reads several markets: names only the missing scopes. */
export function insufficientScopes(scopes: readonly Scope[]): Problem {
  const [first, ...others] = scopes;
  if (first !== undefined && others.length === 0) return insufficientScope(first);
  return new Problem('insufficient_scope', `The scopes ${allOf(scopes)} are needed here`, {
    headers: {
      'www-authenticate': `Bearer error="insufficient_scope", scope="${scopes.join(' ')}"`,
    },
  });
}

/** A 403 for a route that requires the scope of any market. */
export const noMarketScope = (): Problem =>
  new Problem(
    'insufficient_scope',
    `The scope of a market is needed here, prices:<market>, or prices:* for all: ${OTHER_SCOPE}`,
    { headers: { 'www-authenticate': 'Bearer error="insufficient_scope", scope="prices:*"' } },
  );

/** A 503: clients discard credentials on a 401, so a server failure must not be a 401. */
export const authUnavailable = (cause: unknown): Problem =>
  new Problem('auth_unavailable', 'The credential could not be checked. Try again shortly', {
    cause,
  });

/**
 * A token whose `kid` the cached key set lacks: it may be new, or forged. The answer invites to try
 * again after the next fetch, and the request counts as a failed authentication.
 */
export class UnknownSigningKey extends Problem {
  /** @param retrySeconds seconds until the key set may be fetched again */
  constructor(cause: unknown, retrySeconds: number) {
    super('auth_unavailable', 'The credential could not be checked. Try again shortly', {
      cause,
      headers: { 'retry-after': String(retrySeconds) },
    });
  }
}
