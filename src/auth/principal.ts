import type { KeyLimits } from '../limits/limits.ts';

/** Who is asking, once the credential was checked. */
export interface Principal {
  readonly kind: 'key' | 'token';
  /** The public id of the key, or the subject of the token; neither is a secret. */
  readonly id: string;
  readonly scopes: ReadonlySet<string>;
  /** The instant (RFC 3339, UTC) from which the credential is refused; null for never. */
  readonly expiresAt: string | null;
  /** The limits of a key's own; a number that is null is that of the service. */
  readonly limits: KeyLimits | null;
}
