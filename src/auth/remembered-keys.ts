import type { Kysely } from 'kysely';
import type { Newest } from '../db/pulse.ts';
import type { Database } from '../db/schema.ts';
import { sharedReading } from '../db/shared-reading.ts';
import { findKey, isDigestOf, type KeyRecord } from './verify-key.ts';

/** Looks a key up as of a look at the database: what was revoked before it is revoked. */
type KeysAt = (
  newest: Newest,
  publicId: string,
  digest: Uint8Array,
) => Promise<KeyRecord | undefined>;

/**
 * Keys that were read, for as long as the database says that no key has changed. Ids that are
 * not known are not kept: strangers draw as many as they like. A wrong secret of a key that is kept
 * is looked up as they are, so that the time of a refusal does not tell that the key exists. Many
 * requests that come with one key at once, as after a change of any, share one lookup.
 * @param keep how many keys are kept, some 500 bytes each
 */
export function rememberedKeys(db: Kysely<Database>, keep: number): KeysAt {
  const kept = new Map<string, KeyRecord>();
  const once = sharedReading<KeyRecord | undefined>();
  let version = '';
  return async (newest, publicId, digest) => {
    const current = `${newest.epoch}.${newest.keysVersion}`;
    if (current !== version) {
      kept.clear();
      version = current;
    }
    const found = kept.get(publicId);
    if (isDigestOf(found, digest)) return found;
    // Read after the look, so never older than it says; one that is newer is refused no less.
    const asked = `${current} ${publicId} ${Buffer.from(digest).toString('base64')}`;
    const record = await once(asked, () => findKey(db, publicId));
    // Another request may have seen a newer version meanwhile.
    if (record === undefined || current !== version) return record;
    kept.set(publicId, record);
    for (const oldest of kept.keys()) {
      if (kept.size <= keep) break;
      kept.delete(oldest);
    }
    return record;
  };
}
