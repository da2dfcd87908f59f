import { newKey } from '../../../src/auth/keys/format.ts';

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** A key with a new checksum, a CRC-32 bit by bit: anyone who knows the format can make it. */
export function withChecksum(body: string): string {
  let crc = ~0;
  for (const byte of Buffer.from(body)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  let rest = ~crc >>> 0;
  let checksum = '';
  for (let place = 0; place < 6; place += 1) {
    checksum = DIGITS.charAt(rest % 62) + checksum;
    rest = Math.floor(rest / 62);
  }
  return body + checksum;
}

/** The id of a key with a secret drawn afresh, and the checksum that belongs to both. */
export const otherSecret = (key: string): string =>
  withChecksum(key.slice(0, 20) + newKey().text.slice(20, 52));
