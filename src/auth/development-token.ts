import { SignJWT } from 'jose';
import { scopesOf } from './scope-list.ts';

interface DevelopmentToken {
  /** The JWT_SECRET of the service: at least 32 bytes. */
  readonly secret: string;
  readonly issuer: string;
  readonly audience: string;
  readonly subject: string;
  readonly scopes: readonly string[];
  readonly lifetimeSeconds: number;
}

/**
 * Signs a token (HS256) as an issuer would, for trying the service out.
 * @throws UnknownScopeError for an unknown scope, RangeError for a lifetime that is not positive,
 *   TypeError for a secret that is too short
 */
export async function createDevelopmentToken(request: DevelopmentToken): Promise<string> {
  const { lifetimeSeconds } = request;
  if (!Number.isSafeInteger(lifetimeSeconds) || lifetimeSeconds <= 0) {
    throw new RangeError('the lifetime must be a positive number of whole seconds');
  }
  const secret = Buffer.from(request.secret);
  if (secret.length < 32) throw new TypeError('JWT_SECRET: must have at least 32 bytes');
  const issuedAt = Math.floor(Date.now() / 1000);
  return new SignJWT({ scope: scopesOf(request.scopes).join(' ') })
    .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt' })
    .setIssuer(request.issuer)
    .setAudience(request.audience)
    .setSubject(request.subject)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + lifetimeSeconds)
    .sign(secret);
}
