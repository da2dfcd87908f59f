import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';

const ITERATIONS = 4096;
const SALT_BYTES = 16;
const DIGEST_BYTES = 32;

/**
 * What PostgreSQL stores of a password (RFC 5803): with it in place of the password, no statement
 * and no log of the server ever holds the password itself.
 * @param password of printable ASCII, which needs no normalisation
 */
export function scramVerifier(password: string, salt: Buffer = randomBytes(SALT_BYTES)): string {
  const salted = pbkdf2Sync(password, salt, ITERATIONS, DIGEST_BYTES, 'sha256');
  const keyFor = (name: string): Buffer => createHmac('sha256', salted).update(name).digest();
  const stored = createHash('sha256').update(keyFor('Client Key')).digest('base64');
  const server = keyFor('Server Key').toString('base64');
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${stored}:${server}`;
}
