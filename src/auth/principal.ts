import type { KeyLimits } from '../limits/limits.ts';

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
