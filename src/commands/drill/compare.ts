import { ARCHIVED } from '../../archive/tables.ts';
import type { Config } from '../../config.ts';
import type { Client } from '../../db/client.ts';
import { contentHash } from '../../db/content-hash.ts';
import { askerOn, type Question } from './answers.ts';

/** Something of the original and of the restored database that must be the same. */
export interface Compared {
  readonly what: string;
  readonly original: string;
  readonly restored: string;
}

type Facts = ReadonlyMap<string, string>;

async function rowsOf({ pool }: Client): Promise<Facts> {
  const counts = new Map<string, string>();
  for (const { name } of ARCHIVED) {
    const { rows } = await pool.query<{ count: string }>(`select count(*) as count from ${name}`);
    counts.set(`rows of ${name}`, rows[0]?.count ?? '');
  }
  return counts;
}

/** Everything of one database that is compared, by what it is called. */
export async function factsOf(
  client: Client,
  config: Config,
  questions: readonly Question[],
  signal: AbortSignal,
): Promise<Facts> {
  const facts = new Map(await rowsOf(client));
  const { parts } = await contentHash(client, signal);
  for (const { part, hash } of parts) facts.set(`content of ${part}`, hash);
  const { ask, close } = await askerOn(client, config);
  try {
    for (const question of questions) {
      signal.throwIfAborted();
      const { status, bytes, sha256 } = await ask(question);
      facts.set(`answer: ${question.what}`, `${status}, ${bytes} bytes, ${sha256}`);
    }
  } finally {
    await close();
  }
  return facts;
}

/** All of both, side by side. */
export const compare = (original: Facts, restored: Facts): Compared[] =>
  [...new Set([...original.keys(), ...restored.keys()])].map((what) => ({
    what,
    original: original.get(what) ?? 'none',
    restored: restored.get(what) ?? 'none',
  }));
