import { MARKETS } from '../../catalog/markets.ts';
import { nearest } from '../../catalog/nearest.ts';
import type { Values } from '../../ingest/change-set.ts';
import type { BatchChange } from '../../ingest/history.ts';
import { type Batch, readLog } from '../../ingest/ledger.ts';
import { command, json, option } from '../command.ts';
import { withDatabase } from '../database.ts';
import { UsageError } from '../failure.ts';
import { countText, printLines, printTable, timeText, writeText } from '../output.ts';
import { changeText } from './report.ts';

/** A whole number greater than 0. @throws UsageError for any other text */
export function wholeOf(text: string, what: string): number {
  const number = Number(text);
  if (/^[1-9]\d{0,8}$/.test(text)) return number;
  throw new UsageError(`${what} is a whole number from 1 on, not "${text.slice(0, 64)}"`);
}

function marketOf(slug: string | undefined): string | null {
  if (slug === undefined) return null;
  const slugs = MARKETS.map((each) => each.slug);
  if (slugs.some((each) => each === slug)) return slug;
  const [hint] = nearest(slug, slugs, 1);
  throw new UsageError(`--market: there is no such market${hint ? `; did you mean ${hint}?` : ''}`);
}

/** What a batch did, without what it did not do. */
function countsText(batch: Batch): string {
  const { inserted, corrected, withdrawn, unchanged, outdated, rejected } = batch;
  const counts = { inserted, corrected, withdrawn, unchanged, outdated, rejected };
  const told = Object.entries(counts).filter(([, count]) => count > 0);
  return told.map(([name, count]) => `${countText(count)} ${name}`).join(', ');
}

const stateOf = ({ status, undoneBy, undoes }: Batch): string => {
  const own = undoes === null ? status : `undoes ${undoes}`;
  return undoneBy === null ? own : `${own}, undone by ${undoneBy}`;
};

function printBatches(batches: readonly Batch[], hasMore: boolean): void {
  printTable(batches, {
    batch: ({ batch }) => batch,
    finished: ({ finishedAt }) => timeText(finishedAt),
    format: ({ format }) => format,
    file: ({ file }) => file,
    'sha-256': ({ sha256 }) => sha256.slice(0, 12),
    status: stateOf,
    did: countsText,
    revision: ({ revision }) => revision,
    by: ({ actor }) => actor,
    reason: ({ reason }) => reason,
  });
  if (hasMore) printLines('', 'Older ones are not shown; a greater --limit shows more.');
}

/** Adds `load log`. */
export const addLoadLog = command({
  name: 'log',
  summary: 'list the newest loads',
  description:
    'Lists the ledger, the newest batch first: loads, refused ones too, withdrawals and undos.',
  options: [
    option('--limit <number>', 'how many').default('20'),
    option('--market <slug>', 'only those that changed this market'),
    json('print data for a program, with all there is about each'),
  ],
  help: `
Examples:
  npm run --silent prices -- load log
  npm run --silent prices -- load log --market nickel --limit 5 --json`,
  async run({ limit, market }: { limit: string; market?: string }) {
    const most = wholeOf(limit, '--limit');
    // One more tells whether there are more.
    const asked = { limit: most + 1, market: marketOf(market) };
    const found = await withDatabase(({ db }) => readLog(db, asked));
    const batches = found.slice(0, most);
    return { data: batches, print: () => printBatches(batches, found.length > most) };
  },
});

/** A change on one line. */
function changeLine({ operation, code, of, date, before, after }: BatchChange): string {
  const kind = `${operation.padEnd(13)} ${of === null ? '' : `${of} `}`;
  if (date !== null) {
    const values = { before: before as Values | null, after: after as Values | null };
    return `${kind}${changeText({ code, date, ...values })}`;
  }
  const name = `${kind}${code}`;
  const lists = [before, after].map((each) => (each === null ? null : JSON.stringify(each)));
  const told = lists.filter((each) => each !== null);
  return told.length === 0 ? name : `${name}: ${told.join(' → ')}`;
}

/** Every change one after another, as a person or a program reads them. */
async function tellChanges(
  batch: Batch,
  changes: AsyncIterable<BatchChange>,
  isJson: boolean,
): Promise<void> {
  let isFirst = true;
  if (isJson) {
    await writeText(`{\n"batch": ${JSON.stringify(batch)},\n"changes": [`);
    for await (const change of changes) {
      await writeText(`${isFirst ? '' : ','}\n${JSON.stringify(change)}`);
      isFirst = false;
    }
    await writeText(isFirst ? ']\n}\n' : '\n]\n}\n');
    return;
  }
  const { startedAt, finishedAt } = batch;
  const told = { ...batch, startedAt: timeText(startedAt), finishedAt: timeText(finishedAt) };
  const facts = Object.entries(told).filter(([, value]) => value !== null && value !== 0);
  printLines(...facts.map(([name, value]) => `${name.padEnd(13)} ${value}`), '');
  for await (const change of changes) {
    await writeText(`${changeLine(change)}\n`);
    isFirst = false;
  }
  if (isFirst) printLines('It changed nothing.');
}

/** Adds `load show`. */
export const addLoadShow = command({
  name: 'show',
  summary: 'tell what a load changed',
  description:
    'Tells all about a batch of the ledger, and every change that it made: new prices and ' +
    'values, corrections with before and after, and what it withdrew.',
  args: [['<batch>', 'its number: load log lists them']],
  options: [json()],
  help: `
Examples:
  npm run --silent prices -- load show 12
  npm run --silent prices -- load show 12 --json`,
  // Changes may be many: they are printed while they are read.
  async run(number: string, options: { json?: true }) {
    const batch = wholeOf(number, 'the number of a batch');
    const { showBatch } = await import('../../ingest/history.ts');
    const tell = (line: Batch, changes: AsyncIterable<BatchChange>) =>
      tellChanges(line, changes, options.json === true);
    await withDatabase(({ client, signal }) => showBatch(client, batch, tell, signal));
  },
});
