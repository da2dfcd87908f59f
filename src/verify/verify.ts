import type pg from 'pg';
import type { Client } from '../db/client.ts';
import { liftLimits, withSession } from '../db/connection.ts';
import { newestRevision, wireText } from '../db/revisions.ts';
import { BATCH_RULES } from './batches.ts';
import { KEY_RULES } from './keys.ts';
import { PRICE_RULES } from './prices.ts';
import { REFERENCE_RULES } from './references.ts';
import { REVISION_RULES } from './revisions.ts';
import type { Broken, Rule } from './rule.ts';
import { SCHEMA_RULES } from './schema.ts';

/** Every rule, in the order in which they are looked at. */
export const RULES: readonly Rule[] = [
  ...SCHEMA_RULES,
  ...REFERENCE_RULES,
  ...PRICE_RULES,
  ...REVISION_RULES,
  ...BATCH_RULES,
  ...KEY_RULES,
];

/** Rows that are shown of a rule that is broken; all are counted. */
const SHOWN_MAX = 20;

/** A rule that was looked at. */
export interface Finding {
  readonly rule: string;
  readonly meaning: string;
  /** How many rows break it. */
  readonly count: number;
  /** The first of them. */
  readonly rows: readonly Broken[];
}

/** What a look at the data found, of one state of it. */
export interface Verification {
  /** The newest revision, as on the wire. */
  readonly revision: string;
  /** All rules that were looked at, with what breaks them. */
  readonly rules: readonly Finding[];
}

async function look(driver: pg.ClientBase, { name, meaning, broken }: Rule): Promise<Finding> {
  if (typeof broken !== 'string') {
    const all = await broken(driver);
    return { rule: name, meaning, count: all.length, rows: all.slice(0, SHOWN_MAX) };
  }
  const { rows } = await driver.query<Record<string, unknown>>(
    `select *, count(*) over () as "rowsInAll" from (${broken}) as broken limit ${SHOWN_MAX}`,
  );
  return {
    rule: name,
    meaning,
    count: Number(rows[0]?.['rowsInAll'] ?? 0),
    rows: rows.map(({ rowsInAll: _, ...row }) => row),
  };
}

/** Looks at rules in the transaction that is under way. */
export async function lookAt(
  driver: pg.ClientBase,
  rules: readonly Rule[],
  onProgress: (done: number, rule: Rule) => void = () => {},
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const rule of rules) {
    onProgress(findings.length, rule);
    findings.push(await look(driver, rule));
  }
  return findings;
}

/**
 * Looks whether rules hold, all in one snapshot that nobody waits for. Nothing is written: an
 * account that only reads is enough.
 */
export const verify = (
  client: Client,
  rules: readonly Rule[],
  onProgress: (done: number, rule: Rule) => void,
  signal?: AbortSignal,
): Promise<Verification> =>
  withSession(client, signal, async ({ db, driver }) => {
    await driver.query('begin isolation level repeatable read read only');
    await liftLimits(driver);
    // Few large sorts, one after another.
    await driver.query(`set local work_mem = '128MB'`);
    const { epoch, revision } = await newestRevision(db);
    const findings = await lookAt(driver, rules, onProgress);
    await driver.query('commit');
    return { revision: wireText(epoch, revision), rules: findings };
  });
