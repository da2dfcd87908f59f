import { isAhead } from '../../db/migrate/migrations.ts';
import { EXIT, UsageError } from '../../std/base-errors.ts';
import { PROGRAM } from '../../std/program.ts';
import type { BrokenRow, Rule } from '../../verify/rule.ts';
import { type Finding, RULES, type Verification, verify } from '../../verify/verify.ts';
import { checkKnown, command, json, option, repeatable } from '../command.ts';
import { withDatabase } from '../database.ts';
import { countText, printLines, printTable } from '../output.ts';

/** The named rules, or all rules without a name. */
function rulesOf(named: readonly string[]): readonly Rule[] {
  const names = RULES.map(({ name }) => name);
  checkKnown('--rule', 'rule', named, names, 'see --list');
  return named.length === 0 ? RULES : RULES.filter(({ name }) => named.includes(name));
}

function printRules(rules: readonly Pick<Rule, 'name' | 'meaning'>[]): void {
  printTable(rules, { rule: ({ name }) => name, meaning: ({ meaning }) => meaning });
}

const textOf = (row: BrokenRow): string =>
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

function printReport({ revision, notices, rules }: Verification): void {
  const broken = rules.filter(({ count }) => count > 0);
  for (const each of broken) printFinding(each);
  printLines(...notices.map((each) => `Note: ${each}.`));
  const all = rules.length === 1 ? '1 rule' : `${rules.length} rules`;
  printLines(
    broken.length === 0
      ? `${all} looked at, none is broken (revision ${revision}).`
      : `${all} looked at, ${broken.length} broken (revision ${revision}).`,
  );
}

/** Adds `db verify`. */
export const addVerify = command({
  name: 'verify',
  summary: 'check everything that must hold for the stored data',
  description:
    'Checks every rule of the stored data: constraints and triggers are in force, and history, ' +
    'feed and ledger are consistent.',
  options: [
    repeatable('--rule <name>', 'only this rule; may be repeated'),
    option('--list', 'only print the rules'),
    json(),
  ],
  help: `
The check reads one snapshot and blocks no load; the account of the service is enough. For each
broken rule it prints up to 20 rows, and the exit code is 1.

Examples:
  ${PROGRAM} db verify
  ${PROGRAM} db verify --rule in-force --rule history-whole --json
  ${PROGRAM} db verify --list`,
  async run({ rule, list }: { rule: readonly string[]; list?: true }) {
    const rules = rulesOf(rule);
    if (list) {
      const named = rules.map(({ name, meaning }) => ({ name, meaning }));
      return { data: named, print: () => printRules(named) };
    }
    const report = await withDatabase(async ({ client, db, signal, progress }) => {
      if (await isAhead(db)) {
        throw new UsageError(
          'DATABASE_URL: a newer version has migrated this database: let that version verify it',
        );
      }
      const onProgress = (done: number, { name }: Rule) =>
        progress.update(`${done + 1} of ${rules.length}: ${name}`);
      return verify(client, rules, onProgress, signal);
    });
    const isBroken = report.rules.some(({ count }) => count > 0);
    return {
      data: report,
      print: () => printReport(report),
      exitCode: isBroken ? EXIT.failed : EXIT.ok,
    };
  },
});
