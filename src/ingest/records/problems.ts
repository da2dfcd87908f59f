import {
  type LoadErrorCode,
  type LoadProblem,
  type ProblemPlace,
  problemOf,
} from './load-error.ts';
import type { RejectsFile } from './rejects-file.ts';
import type { PointField, SourceRecord } from './source-record.ts';

/** Replaces a field name by the name of its column, where the file has column names of its own. */
function withColumnName(record: SourceRecord | null, place: ProblemPlace): ProblemPlace {
  if (record?.kind !== 'point' || !record.places || !place.column) return place;
  return { ...place, column: record.places.nameOf(place.column as PointField, record.line) };
}

/** Problems that are kept for display; all problems are counted. */
export const PROBLEMS_MAX = 1_000;

/**
 * The problems of one load, and the number of rows that they reject. With a rejects file, rejected
 * rows are written there and only a problem of the whole file refuses the load.
 */
export class Problems {
  readonly kept: LoadProblem[] = [];
  total = 0;
  rejected = 0;
  /** Number of problems of the whole file. */
  fatal = 0;
  /** The last reported problem. */
  latest: LoadProblem | null = null;
  /** The record that is being validated. */
  record: SourceRecord | null = null;
  readonly rejects: RejectsFile | null;

  constructor(rejects: RejectsFile | null = null) {
    this.rejects = rejects;
  }

  /** True if the problems refuse the load. */
  get refuses(): boolean {
    return this.rejects === null ? this.total > 0 : this.fatal > 0;
  }

  /** Reports a problem of a row or of a description. */
  add(code: LoadErrorCode, message: string, place: ProblemPlace = {}): void {
    const isKept = this.kept.length < PROBLEMS_MAX;
    if (!isKept && this.rejects === null) {
      this.total += 1;
      return;
    }
    const problem = problemOf(code, message, withColumnName(this.record, place));
    this.note(problem);
    this.rejects?.add(problem);
  }

  /** Reports a problem and rejects its row. */
  reject(code: LoadErrorCode, message: string, place: ProblemPlace): void {
    this.rejected += 1;
    this.add(code, message, place);
  }

  /** Counts rejected rows beyond those that are listed. */
  countUnlisted(rows: number): void {
    this.total += rows;
    this.rejected += rows;
  }

  /** Reports a problem of the whole file. */
  refuse(problem: LoadProblem): void {
    this.fatal += 1;
    this.note(problem);
  }

  /** The kept problems in file order. */
  inOrder(): LoadProblem[] {
    return this.kept.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0));
  }

  private note(problem: LoadProblem): void {
    this.total += 1;
    this.latest = problem;
    if (this.kept.length < PROBLEMS_MAX) this.kept.push(problem);
  }
}
