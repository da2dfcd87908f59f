import { listKeys } from '../auth/key-info.ts';
import { createKey, revokeKey } from '../auth/keys.ts';
import { ALL_MARKETS } from '../catalog/scopes.ts';
import type { Client } from '../db/client.ts';
import { isAlive, ownIdentity } from '../db/embedded/process.ts';

const NAME = 'demo';
/** The life of a demo key: a service that is killed leaves no key that works for long. */
const LIFE_MS = 24 * 3_600_000;
const OWNER = 'made at the start without DATABASE_URL';

/** The owner of a demo key: which service shows it, and the process that this service is. */
const ownerOf = (address: string, identity: string): string =>
  `${OWNER}, for ${address} of process ${identity}`;

const OWNER_FORM = new RegExp(`^${OWNER}(?:, for (\\S+) of process (.+))?$`);

/** The key that the terminal shows, and the other services that run on the same database. */
export interface DemoKey {
  readonly id: string;
  readonly key: string;
  readonly others: readonly string[];
}

/**
 * Makes a key for every market, valid for 24 hours, and revokes those of services that have ended.
 * Only for a service that listens, at this address: a start that fails leaves no key behind.
 */
export async function renewDemoKey({ db }: Client, address: string): Promise<DemoKey> {
  const keys = await listKeys(db);
  const owner = ownerOf(address, await ownIdentity());
  const { id: ownId, key } = await createKey(db, {
    name: NAME,
    owner,
    scopes: [ALL_MARKETS],
    expiresAt: new Date(Date.now() + LIFE_MS),
  });
  const others: string[] = [];
  for (const { id, name, owner: of, status } of keys) {
    const form = OWNER_FORM.exec(of ?? '');
    if (name !== NAME || form === null || status === 'revoked') continue;
    const [, other, identity] = form;
    if (other !== undefined && (await isAlive(identity ?? ''))) others.push(other);
    else await revokeKey(db, id, 'a later start made another');
  }
  return { id: ownId, key, others };
}

/** Revokes the key of a service that stops. Of one that is killed, the next start does. */
export async function endDemoKey({ db }: Client, id: string): Promise<void> {
  await revokeKey(db, id, 'the service that showed it stopped');
}
