import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import type { Client } from '../../db/client.ts';
import {
  type Connection,
  inApplyTransaction,
  openRevision,
  withSession,
} from '../../db/connection.ts';
import { textOf } from '../../db/revisions.ts';
import { type Listed, PREVIEW_MAX, type Values } from '../change-set.ts';
import { openSource, type SourceFile } from '../file.ts';
import { type ChangeRequest, nextBatch, writeBatch } from '../ledger.ts';
import { Refused } from '../plan.ts';
import type { Trx } from '../reference.ts';
import { type LoadProblem, Problems, problemOf } from '../rejects/problems.ts';
import { NO_COUNTS } from '../request.ts';
import { checkWithdrawal, type Selection, stageWithdrawal, UNSTAGE } from './stage.ts';

interface WithdrawalRequest extends ChangeRequest<WithdrawnPoints> {
  readonly selection: Selection;
}

/** A point that is withdrawn, with the value that it has until then. */
interface WithdrawnPoint {
  readonly code: string;
  readonly date: string;
  readonly before: Values;
}

/** The first of the points, in the order of codes and dates. */
export type WithdrawnPoints = Listed<WithdrawnPoint>;

/** Result of a withdrawal. */
export interface WithdrawalReport {
  /** `refused`: nothing changed, `errors` say why. `previewed`: a dry run. */
  readonly status: 'applied' | 'refused' | 'previewed';
  /** Its number in the ledger; null when nothing changed. */
  readonly batch: number | null;
  /** In the form of an answer of the service. */
  readonly revision: string | null;
  readonly points: WithdrawnPoints;
  readonly errors: readonly (Omit<LoadProblem, 'file'> & { readonly file: string | null })[];
  readonly errorsTotal: number;
}

/** A file that names points, and its SHA-256 before it was read. */
interface Source {
  readonly file: SourceFile;
  readonly sha256: Buffer;
}

/** What the ledger says about what was named. */
function nameOf(selection: Selection): string {
  if ('file' in selection) return selection.file;
  const { code } = selection;
  if ('dates' in selection) {
    const [first = '', ...more] = selection.dates;
    return `${code} ${first}${more.length > 0 ? ` and ${more.length} more` : ''}`;
  }
  const { from, to } = selection;
  if (from === null && to === null) return code;
  return `${code}${from === null ? '' : ` from ${from}`}${to === null ? '' : ` to ${to}`}`;
}

async function pointsOf(trx: Trx): Promise<WithdrawnPoints> {
  const { rows } = await sql<Values & { code: string; date: string; total: string }>`
    select p.code, s.date, s.low, s.mid, s.high, count(*) over () as total
    from pg_temp.withdrawal w join series s on s.price_id = w.id and s.date = w.date
      join price p on p.id = w.id
    order by p.code collate "C", s.date limit ${PREVIEW_MAX}`.execute(trx);
  const shown = rows.map(({ code, date, low, mid, high }) => ({
    code,
    date,
    before: { low, mid, high },
  }));
  return { total: Number(rows[0]?.total ?? 0), shown };
}

/** Takes the points out of the data; their last values stay in the history. */
async function write(
  trx: Trx,
  { selection, actor, reason }: WithdrawalRequest,
  source: Source | null,
  withdrawn: number,
): Promise<Pick<WithdrawalReport, 'batch' | 'revision'>> {
  const { rows } = await sql<{ now: string; today: string }>`
    select clock_timestamp() as now, (clock_timestamp() at time zone 'UTC')::date as today`.execute(
    trx,
  );
  const number = await openRevision(trx, reason);
  const batch = await nextBatch(trx);
  const deleted = await sql`
    delete from series s using pg_temp.withdrawal w
    where s.price_id = w.id and s.date = w.date`.execute(trx);
  if (Number(deleted.numAffectedRows) !== withdrawn) {
    throw new Error(`withdrew ${deleted.numAffectedRows} points where ${withdrawn} were planned`);
  }
  await writeBatch(trx, batch, 'applied', number, {
    format: 'withdraw',
    fileName: source?.file.name ?? nameOf(selection),
    sha256: source?.sha256 ?? createHash('sha256').update(JSON.stringify(selection)).digest(),
    mappingSha256: null,
    // An older edition, which does not know of it yet, does not publish the points again.
    vintage: rows[0]?.today ?? null,
    actor,
    reason,
    startedAt: rows[0]?.now ?? '',
    counts: { ...NO_COUNTS, rows: withdrawn, withdrawn },
  });
  return { batch, revision: await textOf(trx, number) };
}

async function withdrawOn(
  { db, driver }: Connection,
  request: WithdrawalRequest,
  source: Source | null,
): Promise<WithdrawalReport> {
  const { selection, dryRun } = request;
  const problems = new Problems();
  let points: WithdrawnPoints = { total: 0, shown: [] };
  await stageWithdrawal(driver, selection, source, problems);
  const work = async (trx: Trx): Promise<Pick<WithdrawalReport, 'batch' | 'revision'>> => {
    if (!problems.refuses) await checkWithdrawal(trx, selection, problems);
    if (problems.refuses) throw new Refused();
    points = await pointsOf(trx);
    if (points.total === 0) {
      problems.refuse(problemOf('empty_file', 'The file names no points', {}));
      throw new Refused();
    }
    request.onPreview?.(points);
    if (dryRun) return { batch: null, revision: null };
    return write(trx, request, source, points.total);
  };
  let done: Pick<WithdrawalReport, 'status' | 'batch' | 'revision'>;
  try {
    done = dryRun
      ? {
          status: 'previewed',
          ...(await db.transaction().setIsolationLevel('repeatable read').execute(work)),
        }
      : { status: 'applied', ...(await inApplyTransaction(db, work, request.onHeld)) };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    done = { status: 'refused', batch: null, revision: null };
  }
  // What is committed was done, whatever becomes of the connection.
  await driver.query(UNSTAGE).catch(() => {});
  const file = source?.file.path ?? null;
  const errors = problems.inOrder().map((problem) => ({ file, ...problem }));
  return { ...done, points, errors, errorsTotal: problems.total };
}

/**
 * Withdraws points: all that are named, in one transaction and one revision, or none. Readers see
 * them no more; the past keeps them. It is a batch of the ledger, and can be undone. A load may
 * publish them again, unless its vintage is not newer than the withdrawal.
 * @throws errors of the file system and of the database, and the reason of the signal; nothing
 * has changed then
 */
export async function withdraw(
  client: Client,
  request: WithdrawalRequest,
): Promise<WithdrawalReport> {
  const { selection, signal } = request;
  const file = 'file' in selection ? await openSource(selection.file) : null;
  try {
    const source = file && { file, sha256: await file.sha256(signal) };
    return await withSession(client, signal, (connection) =>
      withdrawOn(connection, request, source),
    );
  } finally {
    await file?.close();
  }
}
