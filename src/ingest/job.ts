import { DATE_MIN, isDay } from './dates.ts';
import type { SourceFile } from './file.ts';
import type { Format } from './format.ts';
import type { BatchEntry } from './ledger.ts';
import { type LoadErrorCode, type Problems, problemOf } from './problems.ts';
import type { RejectsFile } from './rejects-file.ts';
import type { LoadRequest } from './request.ts';
import type { Staged } from './stage.ts';

/** One load, while it is done. */
export interface Job {
  readonly request: LoadRequest;
  readonly format: Format;
  readonly file: SourceFile;
  readonly problems: Problems;
  readonly rejects: RejectsFile | null;
  readonly entry: Omit<BatchEntry, 'counts' | 'vintage'>;
  /** Tomorrow, in UTC. */
  readonly dateMax: string;
  /** When the load began, RFC 3339 in UTC. */
  readonly now: string;
}

/** The edition: what the file states, else what the caller says; the two never contradict. */
export function vintageOf(
  read: Staged,
  { request, format, problems, dateMax }: Job,
): string | null {
  const stated = read.vintage;
  const given = request.vintage ?? null;
  const vintage = stated ?? given;
  const fail = (message: string): null => {
    problems.refuse(problemOf('invalid_vintage', message, { value: given ?? stated }));
    return null;
  };
  if (given !== null && stated !== null && given !== stated) {
    return fail(`The file is the edition of ${stated}, and another vintage was given`);
  }
  if (vintage === null) {
    // Without a single value there is another problem, of which this would be an echo.
    const isMissed = format.needsVintage && read.rows > 0;
    return isMissed ? fail('The file does not state its edition: give its vintage') : null;
  }
  if (isDay(vintage) && vintage >= DATE_MIN && vintage <= dateMax) return vintage;
  return fail(`The vintage is not a day from ${DATE_MIN} to ${dateMax}, written YYYY-MM-DD`);
}

/** SHA-256 of a file, told as progress. @param rows that were read of it before */
export const hashOf = (file: SourceFile, { onProgress, signal }: LoadRequest, rows: number) =>
  file.sha256(signal, (bytes) =>
    onProgress?.({ step: 'hashing', rows, bytes, bytesTotal: file.size }),
  );

/** Looks at the file as a whole, once it has been read; notes problems. */
export async function checkFile(
  { file, problems, entry, request }: Job,
  read: Staged,
): Promise<void> {
  const refuse = (code: LoadErrorCode, message: string) =>
    problems.refuse(problemOf(code, message, {}));
  const hash = await hashOf(file, request, read.rowsRead);
  if (!hash.equals(entry.sha256)) {
    refuse('file_changed', 'The file was changed while it was read: load it again');
  }
  if (read.rowsRead === 0 && read.descriptions.count === 0 && problems.total === 0) {
    refuse('empty_file', 'The file holds no values');
  }
}
