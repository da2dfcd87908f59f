import { createHash } from 'node:crypto';
import type { KeyLimits } from '../limits/limits.ts';
import {
  ambiguousCredentials,
  invalidToken,
  type KeyPlace,
  keyAsToken,
  missingCredentials,
} from './refusals.ts';

/*
 * The credential of a request: an API key (`keys`) or a token (`tokens`). This file finds the one
 * that was sent. `refusals.ts` has the problem of each rejection. `src/http/hooks/auth.ts` runs the
 * checks.
 */

/** The one credential of a request, unchecked. Its text is a secret: never log it. */
interface Credential {
  readonly place: KeyPlace | 'token';
  readonly text: string;
}

/** The owner of a checked credential. */
export interface Principal {
  readonly kind: 'key' | 'token';
  /** The public id of the key, or the subject of the token; neither is a secret. */
  readonly id: string;
  readonly scopes: ReadonlySet<string>;
  /** Expiry of the credential (RFC 3339, UTC); null if it does not expire. */
  readonly expiresAt: string | null;
  /** The key's own limits; null members default to the limits of the service. */
  readonly limits: KeyLimits | null;
}

/**
 * The name of a principal for limits, also stored in the table that instances share. A subject is
 * hashed, because it may have any length and may be a person's name.
 */
export const principalName = ({ kind, id }: Pick<Principal, 'kind' | 'id'>): string =>
  `${kind}:${kind === 'key' ? id : createHash('sha256').update(id).digest('base64url')}`;

/** RFC 6750, section 2.1: one space, then a b64token. The scheme's case does not matter. */
const BEARER = /^Bearer ([A-Za-z0-9._~+/-]+=*)$/i;

/** An API key, bare or after a scheme. No JSON Web Token begins with this prefix. */
const KEY = /^(?:\S+ )?cps_/;

const BASIC = /^Basic ([A-Za-z0-9+/]+=*)$/i;

/** Password of a Basic `Authorization` header (RFC 7617); null for another scheme. */
function basicPassword(value: string): string | null {
  const basic = BASIC.exec(value)?.[1];
  if (basic === undefined) return null;
  const pair = Buffer.from(basic, 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  return colon < 0 ? null : pair.slice(colon + 1);
}

/** True if `Authorization` holds an API key: bare, after a scheme, or as Basic name or password. */
function holdsKey(value: string): boolean {
  const basic = BASIC.exec(value)?.[1];
  if (basic === undefined) return KEY.test(value);
  return /(?:^|:)cps_/.test(Buffer.from(basic, 'base64').toString('latin1'));
}

/**
 * True if a text has the form of a calendar token. Its prefix is a part of the digest in the
 * database, so that no live key is one with another prefix.
 */
export const isCalendarToken = (text: string): boolean => text.startsWith('cps_cal_');

/** The one address that takes a calendar token, also in its query. */
const CALENDAR_ADDRESS = '/v3/calendar?';

/**
 * The calendar token in the query of the calendar address; null without one. Programs that
 * subscribe to a calendar send no headers. Another credential there is not read.
 */
export function calendarTokenIn(url: string): string | null {
  if (!url.startsWith(CALENDAR_ADDRESS)) return null;
  const sent = new URLSearchParams(url.slice(CALENDAR_ADDRESS.length)).getAll('token');
  const [token = '', ...more] = sent;
  return more.length === 0 && isCalendarToken(token) ? token : null;
}

const KEY_HEADER = 'x-api-key';
const TOKEN_HEADER = 'authorization';

/**
 * Finds the credential of a request in these two headers. A key in the query string is never
 * used, because addresses are logged; a calendar token is, at its own address only.
 *
 * @param rawHeaders alternating names and values, as Node received them: its `headers` joins two
 *   keys into one and drops a second Authorization
 * @param takesBasic accepts an API key as the password of Basic authentication
 * @param url is searched for a key only to say so in the refusal
 * @throws Problem missing_credentials, ambiguous_credentials, or invalid_token if
 *   Authorization is not "Bearer <token>" or holds an API key
 */
export function credentialOf(
  rawHeaders: readonly string[],
  takesBasic = false,
  url = '',
): Credential {
  const found: { name: string; value: string }[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const sent = rawHeaders[at] as string;
    if (sent.length !== KEY_HEADER.length && sent.length !== TOKEN_HEADER.length) continue;
    const name = sent.toLowerCase();
    if (name !== KEY_HEADER && name !== TOKEN_HEADER) continue;
    found.push({ name, value: rawHeaders[at + 1] ?? '' });
  }
  const [only] = found;
  const token = calendarTokenIn(url);
  if (token !== null && only === undefined) return { place: 'query', text: token };
  if (only === undefined) throw missingCredentials(takesBasic, url);
  if (found.length > 1 || token !== null) throw ambiguousCredentials();
  if (only.name === KEY_HEADER) return { place: 'x-api-key', text: only.value };
  const password = takesBasic ? basicPassword(only.value) : null;
  if (password !== null) return { place: 'password', text: password };
  if (holdsKey(only.value)) throw keyAsToken();
  const bearer = BEARER.exec(only.value)?.[1];
  if (bearer === undefined) throw invalidToken();
  return { place: 'token', text: bearer };
}
