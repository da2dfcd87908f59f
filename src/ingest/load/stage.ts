import type { Connection } from '../../db/connection.ts';
import { DATE_MIN, isDay } from '../parsing/dates.ts';
import { problemOf } from '../records/load-error.ts';
import type { Problems } from '../records/problems.ts';
import { stageFile } from '../staging/stage.ts';
import { hashOf } from './open.ts';
import { LoadRefused, type OpenedLoad, type StagedLoad } from './phases.ts';

interface StageRules {
  /** `none` if the file names points to withdraw. */
  readonly values?: 'none';
  readonly jumpFactor?: string;
  /** The vintage of a file that does not state it. */
  readonly vintage?: string | undefined;
}

/**
 * Reads a file into the staging tables, and reports the problems of its rows, its vintage, and a
 * change of the file while it was read.
 * @throws LoadRefused if the file cannot be read to its end
 */
export async function stage(
  { driver }: Connection,
  opened: OpenedLoad,
  problems: Problems,
  { values, jumpFactor, vintage }: StageRules,
): Promise<StagedLoad> {
  const { request, file } = opened;
  const content = await stageFile(driver, {
    ...opened,
    problems,
    values: values ?? 'all',
    jumpFactor,
    signal: request.signal,
    onProgress: (progress) => request.onProgress?.({ step: 'reading', ...progress }),
  });
  const read = { ...opened, ...content, problems };
  if (!content.isWhole) throw new LoadRefused({ ...read, vintage: null });
  const staged = { ...read, vintage: vintageOf(read, vintage ?? null) };
  const hash = await hashOf(file, request, content.rowsRead);
  if (!hash.equals(opened.sha256)) {
    const message = 'The file was changed while it was read: load it again';
    problems.refuse(problemOf('file_changed', message, {}));
  }
  return staged;
}

/** The vintage that the file states, otherwise that of the request; the two must not differ. */
function vintageOf(
  { format, bounds, problems, statedVintage: stated, rows }: Omit<StagedLoad, 'vintage'>,
  given: string | null,
): string | null {
  const vintage = stated ?? given;
  const fail = (message: string): null => {
    problems.refuse(problemOf('invalid_vintage', message, { value: given ?? stated }));
    return null;
  };
  if (given !== null && stated !== null && given !== stated) {
    return fail(`The file states the vintage ${stated}, but another vintage was given`);
  }
  if (vintage === null) {
    // A file without values has a problem of its own.
    const isMissed = format.needsVintage && rows > 0;
    return isMissed ? fail('The file does not state its vintage: give it with --vintage') : null;
  }
  if (isDay(vintage) && vintage >= DATE_MIN && vintage <= bounds.dateMax) return vintage;
  return fail(`The vintage is not a day from ${DATE_MIN} to ${bounds.dateMax}, written YYYY-MM-DD`);
}
