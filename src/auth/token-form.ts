import { isUtf8 } from 'node:buffer';
import { hasDuplicateMembers } from './json-members.ts';
import { invalidToken } from './refusals.ts';

/** The algorithms that a public key may be used with. */
export const ASYMMETRIC = ['RS256', 'PS256', 'ES256', 'EdDSA'] as const;

export type Algorithm = 'HS256' | (typeof ASYMMETRIC)[number];

/** The two members of a token's header that are used; all others are ignored or refused. */
export interface TokenHeader {
  readonly alg: Algorithm;
  readonly kid: string | undefined;
}

const BYTES_MAX = 8_192;
const TYPES = new Set(['jwt', 'at+jwt', 'application/at+jwt']);

type Members = Readonly<Record<string, unknown>>;

const refuse = (why: string): never => {
  throw invalidToken(new Error(why));
};

/** Strict base64url: every text has one encoding, so a token cannot be altered and still pass. */
function bytesOf(segment: string): Buffer {
  const bytes = Buffer.from(segment, 'base64url');
  return bytes.toString('base64url') === segment ? bytes : refuse('not base64url');
}

function membersOf(segment: string): Members {
  const bytes = bytesOf(segment);
  if (!isUtf8(bytes)) return refuse('not UTF-8');
  const text = bytes.toString('utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return refuse('not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refuse('not an object');
  }
  if (hasDuplicateMembers(text)) return refuse('a member is named twice');
  return value as Members;
}

/**
 * Reads the header of a token and checks the form of all of it, before any key is looked for.
 * `jku`, `jwk`, `x5c` and `x5u` are never read: keys come from the configuration alone.
 *
 * @param allowed the algorithms that the configured keys may be used with
 * @throws Problem invalid_token
 */
export function headerOf(token: string, allowed: readonly Algorithm[]): TokenHeader {
  if (Buffer.byteLength(token) > BYTES_MAX) refuse('too long');
  const segments = token.split('.');
  const [head = '', payload = '', signature = ''] = segments;
  if (segments.length !== 3 || signature === '') refuse('not three segments');
  bytesOf(signature);
  membersOf(payload);
  const header = membersOf(head);
  const alg = allowed.find((each) => each === header['alg']) ?? refuse('another algorithm');
  // RFC 7515, section 4.1.11: no extension is understood here, so each critical one is refused.
  if ('crit' in header) refuse('a critical extension');
  const { typ, kid } = header;
  if (typ !== undefined && !(typeof typ === 'string' && TYPES.has(typ.toLowerCase()))) {
    refuse('another type');
  }
  if (kid !== undefined && typeof kid !== 'string') return refuse('kid is not a text');
  return { alg, kid };
}
