import type { Selection, WithdrawalReport, WithdrawnPoints } from '../../ingest/ledger/withdraw.ts';
import { isDay } from '../../ingest/parsing/dates.ts';
import { EXIT, UsageError } from '../../std/base-errors.ts';
import { PROGRAM } from '../../std/program.ts';
import { by, command, json, option, required } from '../command.ts';
import { printLines } from '../output.ts';
import { changeText, errorLines, section, type TakingOptions, takingRequest } from './report.ts';

interface WithdrawOptions extends TakingOptions {
  readonly date?: string[];
  readonly from?: string;
  readonly to?: string;
  readonly all?: true;
  readonly file?: string;
}

/** The selected points. @throws UsageError for an empty or ambiguous selection */
export function selectionOf(code: string | undefined, options: WithdrawOptions): Selection {
  const { date, file, all } = options;
  const [from = null, to = null] = [options.from, options.to];
  const ways = [date, file, all, from ?? to].filter((each) => (each ?? null) !== null).length;
  if (ways !== 1 || (code === undefined) !== (file !== undefined)) {
    throw new UsageError(
      'name a price and --date, --from, --to or --all; or take --file, which names prices itself',
    );
  }
  for (const [name, day] of Object.entries({ from, to })) {
    if (day !== null && !isDay(day)) {
      throw new UsageError(`--${name}: "${day.slice(0, 64)}" is not a day, written YYYY-MM-DD`);
    }
  }
  if (from !== null && to !== null && from > to) throw new UsageError('--from lies after --to');
  if (file !== undefined) return { file };
  if (date) return { code: code as string, dates: date };
  return { code: code as string, from, to };
}

function printWithdrawal({ status, batch, revision, ...report }: WithdrawalReport): void {
  if (status === 'refused') {
    process.stderr.write(`${errorLines(report).join('\n')}\n`);
    printLines('Refused; nothing was changed.');
  } else if (status === 'previewed') printLines('A dry run; nothing was changed.');
  else printLines(`Withdrawn (batch ${batch}, revision ${revision}).`);
}

/** Adds `withdraw`. */
export const addWithdraw = command({
  name: 'withdraw',
  summary: 'take published points back',
  description:
    'Withdraws points of a price: readers see them no more, and the past keeps them. No load ' +
    'ever does that.',
  args: [['[code]', 'code of the price']],
  options: [
    option('--date <days...>', 'these days, each with a value, as YYYY-MM-DD'),
    option('--from <day>', 'all points from this day on'),
    option('--to <day>', 'all points up to this day'),
    option('--all', 'all points of the price'),
    option('--file <path>', 'the points of a CSV file with the columns code and date'),
    required('--reason <text>', 'why; kept with the withdrawal'),
    by(),
    option('--dry-run', 'only report the points that would be withdrawn'),
    json(),
  ],
  help: `
All points that are named are withdrawn, in one transaction and one revision, or none of them (exit
code 3): a code or a day that has no value is refused. Every point is reported first. The withdrawal
is a batch of the ledger; load undo brings the points back.

Examples:
  ${PROGRAM} withdraw CP-NI-0001 --date 2026-01-08 --reason "not assessed"
  ${PROGRAM} withdraw CP-NI-0001 --from 2026-01-01 --reason "ended" --dry-run
  ${PROGRAM} withdraw --file points.csv --reason "published by mistake"`,
  async run(code: string | undefined, options: WithdrawOptions) {
    const selection = selectionOf(code, options);
    const lines = (points: WithdrawnPoints) =>
      section('Withdrawn', points, changeText, { isWhole: true });
    const { withDatabase } = await import('../database.ts');
    const { withdraw } = await import('../../ingest/ledger/withdraw.ts');
    const request = { selection, ...takingRequest(options, lines) };
    const report = await withDatabase(({ client, signal }) =>
      withdraw(client, { ...request, signal }),
    );
    return {
      data: report,
      print: () => printWithdrawal(report),
      exitCode: report.status === 'refused' ? EXIT.refused : EXIT.ok,
    };
  },
});
