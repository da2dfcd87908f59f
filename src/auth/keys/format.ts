import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/**
 * `cps_live_<id10>_<secret32><crc6>`: a public id that may be shown and logged, a secret of
 * 190 bits, and a CRC-32 that detects typing errors without a database query. A calendar token has
 * `cps_cal_` and a public id that begins with `cal`.
 */
const SHAPE = /^(?:cps_live_([0-9A-Za-z]{10})|cps_cal_(cal[0-9A-Za-z]{7}))_[0-9A-Za-z]{38}$/;

/** The kinds of keys: a calendar token opens the due days of its markets, and nothing else. */
export type KeyKind = 'live' | 'calendar';

const CALENDAR_ID = 'cal';

/** The kind of a key by its public id. A live key has an id that begins otherwise. */
export const kindOf = (publicId: string): KeyKind =>
  publicId.startsWith(CALENDAR_ID) ? 'calendar' : 'live';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ID_LENGTH = 10;
const SECRET_LENGTH = 32;
const CHECKSUM_LENGTH = 6;
/** Largest multiple of 62 in a byte: higher bytes would make the first digits more likely. */
const FAIR_BYTES = 248;

/** Random base62 digits with a uniform distribution. */
export function randomDigits(length: number): string {
  let digits = '';
  while (digits.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < FAIR_BYTES && digits.length < length) digits += BASE62.charAt(byte % 62);
    }
  }
  return digits;
}

function checksumOf(text: string): string {
  let rest = crc32(text);
  let digits = '';
  for (let place = 0; place < CHECKSUM_LENGTH; place += 1) {
    digits = BASE62.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}

/** A new key. `text` is secret and shown once; `publicId` is not secret. */
interface NewKey {
  readonly text: string;
  readonly publicId: string;
}

/** Random digits that do not begin like the id of a calendar token. */
function liveId(): string {
  const id = randomDigits(ID_LENGTH);
  return kindOf(id) === 'live' ? id : liveId();
}

/** Generates a key without storing it. */
export function newKey(kind: KeyKind = 'live'): NewKey {
  const isLive = kind === 'live';
  const publicId = isLive ? liveId() : CALENDAR_ID + randomDigits(ID_LENGTH - CALENDAR_ID.length);
  const body = `cps_${isLive ? 'live' : 'cal'}_${publicId}_${randomDigits(SECRET_LENGTH)}`;
  return { text: body + checksumOf(body), publicId };
}

/** Public id of a text with the form and checksum of a key, else null. The key may not exist. */
export function publicIdOf(text: string): string | null {
  const [, live, calendar] = SHAPE.exec(text) ?? [];
  const publicId = live ?? calendar;
  if (publicId === undefined) return null;
  return text.endsWith(checksumOf(text.slice(0, -CHECKSUM_LENGTH))) ? publicId : null;
}
