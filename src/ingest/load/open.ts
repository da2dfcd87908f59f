import type { Client } from '../../db/client.ts';
import { type Connection, withSession } from '../../db/connection.ts';
import { instantOf } from '../../db/instant.ts';
import { EXIT, ExpectedError } from '../../std/base-errors.ts';
import { PROGRAM } from '../../std/program.ts';
import type { SourceFile } from '../records/source-file.ts';
import { POINTS, ratesOf } from '../staging/change-set.ts';
import { DROP_STAGING_TABLES } from '../staging/stage.ts';
import { LoadRefused, type OpenedLoad } from './phases.ts';

/**
 * Hashes the file and takes the start time from the database server, so that all loads share one
 * clock.
 */
export async function open(
  { driver }: Connection,
  input: Pick<OpenedLoad, 'request' | 'formatName' | 'format' | 'file'>,
): Promise<OpenedLoad> {
  const { request, format, file } = input;
  const { rows } = await driver.query<{ now: string; tomorrow: string }>(`
    select clock_timestamp() as now, (clock_timestamp() at time zone 'UTC')::date + 1 as tomorrow`);
  const { now = '', tomorrow = '' } = rows[0] ?? {};
  return {
    ...input,
    reason: request.reason?.trim() || null,
    target: format.source ? ratesOf(format.source) : POINTS,
    sha256: await hashOf(file, request, 0),
    startedAt: now,
    bounds: { dateMax: tomorrow, now: instantOf(now) },
  };
}

/** Hashes a file and reports progress. @param rows read before */
export const hashOf = (
  file: SourceFile,
  { onProgress, signal }: OpenedLoad['request'],
  rows: number,
): Promise<Buffer> =>
  file.sha256(signal, (bytes) =>
    onProgress?.({ step: 'hashing', rows, bytes, bytesTotal: file.size }),
  );

/**
 * Runs the phases of a load or withdrawal on one connection, and closes its file.
 * @param onRefused makes the report of a refused load, whose transaction is rolled back
 */
export async function inPhases<T>(
  client: Client,
  { file, signal }: { readonly file: SourceFile; readonly signal: AbortSignal | undefined },
  onRefused: (connection: Connection, refusal: LoadRefused) => T | Promise<T>,
  phases: (connection: Connection) => Promise<T>,
): Promise<T> {
  try {
    return await withSession(client, signal, async (connection) => {
      const report = await phases(connection).catch((error: unknown) => {
        if (error instanceof LoadRefused) return onRefused(connection, error);
        throw error;
      });
      // The load is committed, so a later error must not fail it.
      await connection.driver.query(DROP_STAGING_TABLES).catch(() => {});
      return report;
    });
  } finally {
    await file.close();
  }
}

/** The database lacks the currencies, units and frequencies that every load needs. */
export class NoReferenceError extends ExpectedError {
  override readonly name = 'NoReferenceError';
  override readonly exitCode = EXIT.usage;
}

/** @throws NoReferenceError for a database without reference data */
export async function requireReference({ driver }: Connection): Promise<void> {
  const { rows } = await driver.query<{ has: boolean }>(
    'select exists (select from currency) and exists (select from unit_of_measure) as has',
  );
  if (rows[0]?.has) return;
  throw new NoReferenceError(
    `the database has no reference data; run: ${PROGRAM} db seed --reference`,
  );
}
