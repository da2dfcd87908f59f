import { createHash } from 'node:crypto';
import { matchKey } from '../../catalog/match-key.ts';
import { didYouMean } from '../../catalog/nearest.ts';
import type { Client } from '../../db/client.ts';
import { NO_COUNTS } from '../../db/ledger.ts';
import type { Trx } from '../descriptions/known-names.ts';
import { NO_PRICE_CHANGES } from '../descriptions/prices.ts';
import { withLockOrSnapshot, write } from '../load/apply.ts';
import { codesOf } from '../load/classify.ts';
import { inPhases, open } from '../load/open.ts';
import { type ClassifiedLoad, LoadRefused, type StagedLoad } from '../load/phases.ts';
import type { ChangeRequest } from '../load/request.ts';
import { stage } from '../load/stage.ts';
import { csvRows, type SourceRow } from '../parsing/rows.ts';
import type { FileFormat, ReadContext } from '../records/format.ts';
import { type LoadProblem, problemOf, Refusal } from '../records/load-error.ts';
import { Problems } from '../records/problems.ts';
import { openSource, type SourceFile } from '../records/source-file.ts';
import type { PointRecord } from '../records/source-record.ts';
import { type Listed, listChanges, stageRange, type ValueChange } from '../staging/change-set.ts';
import { compareValues, markForComparison } from '../staging/compare.ts';
import { rejectDuplicates, rejectMissing, rejectUnknown } from '../staging/rejections.ts';
import { resolveSeries } from '../staging/staged-series.ts';

/**
 * The points to withdraw: points of one price, or those that a CSV file of codes and dates names.
 */
export type Selection =
  | { readonly file: string }
  | {
      readonly code: string;
      /** Days that must each have a value. */
      readonly dates: readonly string[];
    }
  | {
      readonly code: string;
      /** First and last day; null for no bound. */
      readonly from: string | null;
      readonly to: string | null;
    };

/** A withdrawn point with its last value. */
type WithdrawnPoint = Omit<ValueChange, 'after'>;

/** The first withdrawn points, sorted by code and date. */
export type WithdrawnPoints = Listed<WithdrawnPoint>;

interface WithdrawalRequest extends ChangeRequest<WithdrawnPoints> {
  readonly selection: Selection;
}

const NOT_WRITTEN = { batch: null, revision: null };

/** Result of a withdrawal. */
export interface WithdrawalReport {
  /** `refused`: nothing changed, `errors` states why. `previewed`: a dry run. */
  readonly status: 'applied' | 'refused' | 'previewed';
  /** Number of the batch; null if nothing changed. */
  readonly batch: number | null;
  /** In the wire format. */
  readonly revision: string | null;
  readonly points: WithdrawnPoints;
  readonly errors: readonly (Omit<LoadProblem, 'file'> & { readonly file: string | null })[];
  readonly errorsTotal: number;
}

/** A point to withdraw; it has no values. */
const namedPoint = (line: number, code: string, date: string): PointRecord => ({
  kind: 'point',
  line,
  code,
  date,
  low: null,
  mid: null,
  high: null,
  publishedAt: null,
});

/**
 * True if the first column is the code.
 * @throws Refusal unless the columns are code and date
 */
function isCodeFirst({ line, fields }: SourceRow): boolean {
  const hasBoth = fields.includes('code') && fields.includes('date');
  if (hasBoth && fields.length === 2) return fields[0] === 'code';
  const message = 'The file must have exactly the columns code and date';
  const value = fields.join(',');
  throw new Refusal(value === '' ? 'missing_column' : 'unknown_column', message, { line, value });
}

/** Reads a CSV file with the columns `code` and `date`. */
async function* readNamed({ file, problems }: ReadContext): AsyncGenerator<PointRecord[]> {
  let codeFirst: boolean | null = null;
  for await (const rows of csvRows(file.bytes(), problems)) {
    const points: PointRecord[] = [];
    for (const row of rows) {
      const { line, fields } = row;
      const [first = '', second = ''] = fields;
      if (codeFirst === null) codeFirst = isCodeFirst(row);
      else if (fields.length !== 2) {
        const message = `The row has ${fields.length} fields, the header 2`;
        problems.reject('wrong_column_count', message, { line });
      } else if (codeFirst) points.push(namedPoint(line, first, second));
      else points.push(namedPoint(line, second, first));
    }
    yield points;
  }
}

/** A format that yields the points of a selection. */
const formatOf = (selection: Selection): FileFormat => ({
  lineage: [],
  needsVintage: false,
  async *read(context) {
    if ('file' in selection) yield* readNamed(context);
    else if ('dates' in selection) {
      yield [...new Set(selection.dates)].map((date) => namedPoint(0, selection.code, date));
    }
  },
});

/** Describes a selection of the command line for the ledger. */
function nameOf(selection: Exclude<Selection, { file: string }>): string {
  const { code } = selection;
  if ('dates' in selection) {
    const [first = '', ...more] = selection.dates;
    return `${code} ${first}${more.length > 0 ? ` and ${more.length} more` : ''}`;
  }
  const { from, to } = selection;
  return `${code}${from === null ? '' : ` from ${from}`}${to === null ? '' : ` to ${to}`}`;
}

/** A placeholder for the file, without a path, if the command line names the points. */
const withoutFile = (selection: Exclude<Selection, { file: string }>): SourceFile => ({
  path: '',
  name: nameOf(selection),
  size: 0,
  descriptor: -1,
  meter: { bytes: 0, bytesTotal: 0 },
  head: Buffer.alloc(0),
  async *bytes() {},
  sha256: async () => createHash('sha256').update(JSON.stringify(selection)).digest(),
  close: async () => {},
});

type SelectedRange = Extract<Selection, { from: string | null }>;

/** Stages the current points of a price between two days. */
async function stageNamedRange(
  trx: Trx,
  { code, from, to }: SelectedRange,
  problems: Problems,
): Promise<void> {
  const price = await trx
    .selectFrom('price')
    .select(['id', 'code'])
    .where('code_key', '=', matchKey(code))
    .executeTakeFirst();
  if (!price) {
    const message = `No price has this code${didYouMean(code, await codesOf(trx))}`;
    problems.reject('unknown_code', message, { column: 'code', value: code });
    return;
  }
  if ((await stageRange(trx, price.id, from, to)) > 0) return;
  const span = from === null && to === null ? '' : ' on these days';
  problems.reject('no_value', `${price.code} has no value${span}`, {});
}

/**
 * Finds the named points and reports missing ones.
 * @throws LoadRefused if a problem was reported
 */
async function classifyWithdrawal(
  trx: Trx,
  load: StagedLoad,
  selection: Selection,
): Promise<ClassifiedLoad<WithdrawnPoints>> {
  const { problems, target } = load;
  const context = { ...load, trx };
  if (problems.refuses) throw new LoadRefused(load);
  if ('from' in selection) await stageNamedRange(trx, selection, problems);
  else {
    await resolveSeries(trx, load, target);
    await rejectUnknown(context, 'unknown_code', () => codesOf(trx));
    await markForComparison(trx, target, 'all');
    await compareValues(trx, load, 'all');
    await rejectDuplicates(context);
    await rejectMissing(context);
  }
  if (problems.refuses) throw new LoadRefused(load);
  const { total, shown } = await listChanges(trx, 'gone', null);
  if (total === 0) {
    problems.refuse(problemOf('empty_file', 'The file names no points', {}));
    throw new LoadRefused(load);
  }
  const counts = { ...NO_COUNTS, rows: total, withdrawn: total };
  const preview = { total, shown: shown.map(({ after: _, ...point }) => point) };
  return { ...load, currencies: [], prices: NO_PRICE_CHANGES, counts, preview };
}

/**
 * Withdraws all named points in one transaction and one revision, or none. Readers no longer see
 * them; history keeps them. The withdrawal is a batch of the ledger and can be undone. A load may
 * publish the points again if its vintage is newer than the withdrawal.
 * @throws errors of the file system and of the database, and the reason of the signal; nothing has
 *   changed then
 */
export async function withdraw(
  client: Client,
  request: WithdrawalRequest,
): Promise<WithdrawalReport> {
  const { selection, dryRun, signal } = request;
  const file = 'file' in selection ? await openSource(selection.file) : withoutFile(selection);
  const refused = (_: unknown, { load: { problems } }: LoadRefused): WithdrawalReport => ({
    status: 'refused',
    ...NOT_WRITTEN,
    points: { total: 0, shown: [] },
    errors: problems.inOrder().map((problem) => ({ file: file.path || null, ...problem })),
    errorsTotal: problems.total,
  });
  return inPhases(client, { file, signal }, refused, async (connection) => {
    const format = formatOf(selection);
    const opened = await open(connection, { request, formatName: 'withdraw', format, file });
    // The vintage prevents older editions from publishing the points again.
    const rules = { values: 'none', vintage: opened.startedAt.slice(0, 10) } as const;
    const staged = await stage(connection, opened, new Problems(), rules);
    return withLockOrSnapshot(connection, request, async (trx) => {
      const classified = await classifyWithdrawal(trx, staged, selection);
      const { preview: points } = classified;
      await request.onPreview?.(points);
      const written = dryRun ? NOT_WRITTEN : await write(trx, classified);
      const status = dryRun ? 'previewed' : 'applied';
      return { status, ...written, points, errors: [], errorsTotal: 0 };
    });
  });
}
