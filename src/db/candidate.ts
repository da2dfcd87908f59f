import pg from 'pg';
import { destroy } from './goodbye.ts';
import { answered } from './silence.ts';
import type { Standing, Standings } from './standing.ts';

/** The newest revision of a server, and its epoch. */
export interface Extent {
  readonly epoch: string;
  readonly revision: string;
}

/** Another server that answers. */
export interface Candidate extends Standing {
  /** Null for a server that has not the tables. */
  readonly extent: Extent | null;
}

const EXTENT = `select epoch, (select coalesce(max(number), 0) from revision) as revision
  from service`;

/** Whether a server lacks revisions that another one has told of; of another epoch none is. */
export const lacks = (extent: Extent | null, told: Extent | null): boolean =>
  told !== null &&
  (extent === null ||
    (extent.epoch === told.epoch && BigInt(extent.revision) < BigInt(told.revision)));

async function ask(client: pg.Client, url: string, standings: Standings): Promise<Candidate> {
  await client.connect();
  const standing = await standings.of(url, client);
  const extent = await client.query<Extent>(EXTENT).catch((error: { severity?: string }) => {
    if (error.severity === 'ERROR') return { rows: [] };
    throw error;
  });
  return { ...standing, extent: extent.rows[0] ?? null };
}

/** Looks at another server; null when it does not answer in time, or lets us not in. */
export async function candidateAt(
  url: string,
  connection: pg.ClientConfig,
  standings: Standings,
  silenceMs: number,
): Promise<Candidate | null> {
  const client = new pg.Client(connection);
  client.on('error', () => {});
  try {
    return await answered(ask(client, url, standings), silenceMs);
  } catch {
    return null;
  } finally {
    destroy(client);
  }
}
