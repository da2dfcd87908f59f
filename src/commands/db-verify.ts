import type { Command } from 'commander';
import { nearest } from '../catalog/nearest.ts';
import { FOLDER, isAhead, migrationNames } from '../db/migrations.ts';
import type { Broken, Rule } from '../verify/rule.ts';
import { type Finding, RULES, type Verification, verify } from '../verify/verify.ts';
import { withDatabase } from './database.ts';
import { EXIT, UsageError } from './failure.ts';
import { countText, openProgress, printJson, printLines, printTable } from './output.ts';

interface VerifyOptions {
  readonly rule: readonly string[];
  readonly list?: true;
  readonly json?: true;
}

/** The rules that were named; all when none was. */
function rulesOf(named: readonly string[]): readonly Rule[] {
  const names = RULES.map(({ name }) => name);
  const unknown = named.find((each) => !names.includes(each));
  if (unknown !== undefined) {
    const [near] = nearest(unknown, names, 1);
    const hint = near === undefined ? 'see --list' : `did you mean ${near}?`;
    throw new UsageError(`--rule ${unknown}: there is no such rule; ${hint}`);
  }
  return named.length === 0 ? RULES : RULES.filter(({ name }) => named.includes(name));
}

const textOf = (row: Broken): string =>
  Object.entries(row)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} ${typeof value === 'object' ? JSON.stringify(value) : value}`)
    .join(' · ');

function printFinding({ rule, meaning, count, rows }: Finding): void {
  printLines(`${rule}: broken by ${countText(count)}`, `  ${meaning}`);
  printLines(...rows.map((row) => `  – ${textOf(row)}`));
  if (count > rows.length) printLines(`  – and ${countText(count - rows.length)} more`);
  printLines('');
}

function printReport({ revision, rules }: Verification): void {
  const broken = rules.filter(({ count }) => count > 0);
  for (const each of broken) printFinding(each);
  const all = rules.length === 1 ? '1 rule' : `${rules.length} rules`;
  printLines(
    broken.length === 0
      ? `${all} looked at, none is broken (revision ${revision}).`
      : `${all} looked at, ${broken.length} broken (revision ${revision}).`,
  );
}

async function run({ rule, list, json }: VerifyOptions): Promise<void> {
  const rules = rulesOf(rule);
  if (list) {
    const named = rules.map(({ name, meaning }) => ({ name, meaning }));
    if (json) return printJson(named);
    return printTable(named, { rule: ({ name }) => name, meaning: ({ meaning }) => meaning });
  }
  const progress = openProgress();
  const verifying = withDatabase({ schema: true }, async (client, _config, signal) => {
    if (await isAhead(client.db, await migrationNames(FOLDER))) {
      throw new UsageError(
        'DATABASE_URL: a newer version has migrated this database: let that version verify it',
      );
    }
    const tell = (done: number, { name }: Rule) =>
      progress.update(`${done + 1} of ${rules.length}: ${name}`);
    return verify(client, rules, tell, signal);
  });
  const report = await verifying.finally(() => progress.end());
  if (json) printJson(report);
  else printReport(report);
  if (report.rules.some(({ count }) => count > 0)) process.exitCode = EXIT.failed;
}

const collect = (value: string, before: readonly string[]): string[] => [...before, value];

/** Adds `db verify`. */
export function addVerify(db: Command): void {
  db.command('verify')
    .summary('check everything that must hold for the stored data')
    .description(
      'Looks whether the stored data keeps every rule: what constraints and triggers promise, ' +
        'that they are in force, and that history, feed and ledger add up.',
    )
    .option('--rule <name>', 'only this rule; may be repeated', collect, [])
    .option('--list', 'only print the rules')
    .option('--json', 'print data for a program')
    .addHelpText(
      'after',
      `
It reads one snapshot, and nobody waits for it; the account of the service is enough. Of a rule
that is broken it prints up to 20 rows that break it, and ends with exit code 1.

Examples:
  npm run --silent prices -- db verify
  npm run --silent prices -- db verify --rule in-force --rule history-whole --json
  npm run --silent prices -- db verify --list`,
    )
    .action(run);
}
