import type pg from 'pg';
import type { Client } from '../db/client.ts';
import { liftLimits, withSession } from '../db/connection.ts';
import { clockLines, newestRevision, readClockHistory, wireText } from '../db/revisions.ts';
import { BATCH_RULES } from './batches.ts';
import { CALENDAR_RULES } from './calendars.ts';
import { PRICE_RULES } from './prices.ts';
import { REFERENCE_RULES } from './references.ts';
import { REVISION_RULES } from './revisions.ts';
import { accountPrefix, RIGHT_RULES } from './rights.ts';
import type { BrokenRow, Rule } from './rule.ts';
import { SCHEMA_RULES } from './schema.ts';

/*
 * The rules that stored data keep, beyond the constraints of the database. `db verify` checks all
 * of them.
 */

/** All rules, in the order of their checks. */
export const RULES: readonly Rule[] = [
  ...SCHEMA_RULES,
  ...RIGHT_RULES,
  ...REFERENCE_RULES,
  ...PRICE_RULES,
  ...CALENDAR_RULES,
  ...REVISION_RULES,
  ...BATCH_RULES,
];

/** Most reported rows of a broken rule; all are counted. */
const SHOWN_MAX = 20;

const NO_ACCOUNTS =
  'no account of db roles has rights on this database, as after a restore without accounts or ' +
  'rights; a service with an account of its own needs db roles first';

/** The result of a checked rule. */
export interface Finding {
  readonly rule: string;
  readonly meaning: string;
  /** Number of rows that break it. */
  readonly count: number;
  /** The first `SHOWN_MAX` of them. */
  readonly rows: readonly BrokenRow[];
}

/** The results of all checks, on one snapshot. */
export interface Verification {
  /** The newest revision, in the wire format. */
  readonly revision: string;
  /** Lines about what no rule forbids: a clock that jumped back, and missing accounts. */
  readonly notices: readonly string[];
  readonly rules: readonly Finding[];
}

async function checkRule(driver: pg.ClientBase, { name, meaning, broken }: Rule): Promise<Finding> {
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

/** Checks rules in the current transaction. */
export async function checkRules(
  driver: pg.ClientBase,
  rules: readonly Rule[],
  onProgress: (done: number, rule: Rule) => void = () => {},
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const rule of rules) {
    onProgress(findings.length, rule);
    findings.push(await checkRule(driver, rule));
  }
  return findings;
}

/**
 * Checks rules on one snapshot, without blocking other sessions. Needs an account that can read.
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
    // The checks run a few large sorts, one after another.
    await driver.query(`set local work_mem = '128MB'`);
    const { epoch, revision } = await newestRevision(db);
    const findings = await checkRules(driver, rules, onProgress);
    const notices = clockLines(await readClockHistory(db));
    if ((await accountPrefix(driver)) === null) notices.push(NO_ACCOUNTS);
    await driver.query('commit');
    return { revision: wireText(epoch, revision), notices, rules: findings };
  });
