import pg from 'pg';
import { destroy } from './goodbye.ts';
import { commitIdOf, numberOf } from './revisions.ts';
import { answered } from './silence.ts';
import type { Standing, Standings } from './standing.ts';

/** The epoch of a server, and a revision that it has. */
export interface Extent {
  readonly epoch: string;
  readonly revision: string;
}

/** Another server that answers. */
export interface Candidate extends Standing {
  /** Whether it lacks a revision that another server has told of. */
  readonly isLacking: boolean;
}

const LACKS = `select epoch = $1 and $2::bigint > 0
    and not exists (select from revision where number = $2 and commit_id = $3) as "isLacking"
  from service`;

/**
 * Whether a server lacks the commit that another one has told of; one without the tables does, and
 * one of another epoch does not.
 */
export async function lacks(client: pg.ClientBase, told: Extent | null): Promise<boolean> {
  if (told === null) return false;
  const { epoch, revision } = told;
  const values = [epoch, numberOf(revision), commitIdOf(revision)];
  try {
    const { rows } = await client.query<{ isLacking: boolean }>(LACKS, values);
    return rows[0]?.isLacking ?? true;
  } catch (error) {
    if ((error as { severity?: string }).severity === 'ERROR') return true;
    throw error;
  }
}

async function ask(
  client: pg.Client,
  url: string,
  standings: Standings,
  told: Extent | null,
): Promise<Candidate> {
  await client.connect();
  const standing = await standings.of(url, client);
  return { ...standing, isLacking: await lacks(client, told) };
}

/** Looks at another server; null when it does not answer in time, or lets us not in. */
export async function candidateAt(
  url: string,
  connection: pg.ClientConfig,
  standings: Standings,
  told: Extent | null,
  silenceMs: number,
): Promise<Candidate | null> {
  const client = new pg.Client(connection);
  client.on('error', () => {});
  try {
    return await answered(ask(client, url, standings, told), silenceMs);
  } catch {
    return null;
  } finally {
    destroy(client);
  }
}
