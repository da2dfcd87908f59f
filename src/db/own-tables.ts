import { readFile } from 'node:fs/promises';

const FILE = new URL('schema.sql', import.meta.url);

let reading: Promise<readonly string[]> | null = null;

/**
 * The names of the tables of this version, from schema.sql. An installation may have other tables
 * beside them in `public`: no rule and no right of the service is about those.
 */
export function ownTables(): Promise<readonly string[]> {
  reading ??= readFile(FILE, 'utf8').then((text) =>
    [...text.matchAll(/^create (?:unlogged )?table (\w+)/gm)].flatMap(([, name = '']) => name),
  );
  return reading;
}

/** Tables that the account of the service does not read as a whole: receivers and their secrets. */
export const PRIVATE_TABLES: readonly string[] = ['webhook', 'webhook_secret'];
