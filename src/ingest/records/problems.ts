import {
  type LoadErrorCode,
  type LoadProblem,
  type ProblemPlace,
  problemOf,
} from './load-error.ts';
import type { RejectsFile } from './rejects-file.ts';
import type { PointField, SourceRecord } from './source-record.ts';

/** A place in the words of the file, where its columns have names of their own. */
function inWordsOf(record: SourceRecord | null, place: ProblemPlace): ProblemPlace {
  if (record?.kind !== 'point' || !record.places || !place.column) return place;
  return { ...place, column: record.places.nameOf(place.column as PointField, record.line) };
}

/** Problems that are kept to be shown; all are counted. */
export const PROBLEMS_MAX = 1_000;

/**
 * The problems of one load, and how many of its rows they reject. With a file of rejects the
 * rejected rows are set aside, and only what is wrong with the file as a whole refuses it.
 */
export class Problems {
  readonly kept: LoadProblem[] = [];
  total = 0;
  rejected = 0;
  /** Problems of the file as a whole. */
  fatal = 0;
  /** The last problem that was told. */
  latest: LoadProblem | null = null;
  /** What is being looked at. */
  record: SourceRecord | null = null;
  readonly rejects: RejectsFile | null;

  constructor(rejects: RejectsFile | null = null) {
    this.rejects = rejects;
  }

  /** Whether the load cannot be done. */
  get refuses(): boolean {
    return this.rejects === null ? this.total > 0 : this.fatal > 0;
  }

  /** Notes a problem of a row or of a description. */
  add(code: LoadErrorCode, message: string, place: ProblemPlace = {}): void {
    const isKept = this.kept.length < PROBLEMS_MAX;
    if (!isKept && this.rejects === null) {
      this.total += 1;
      return;
    }
    const problem = problemOf(code, message, inWordsOf(this.record, place));
    this.note(problem);
    this.rejects?.add(problem);
  }

  /** Notes a problem and rejects the row that has it. */
  reject(code: LoadErrorCode, message: string, place: ProblemPlace): void {
    this.rejected += 1;
    this.add(code, message, place);
  }

  /** Counts rejected rows whose problems are too many to be listed. */
  leftOut(rows: number): void {
    this.total += rows;
    this.rejected += rows;
  }

  /** Notes a problem of the file as a whole. */
  refuse(problem: LoadProblem): void {
    this.fatal += 1;
    this.note(problem);
  }

  /** The kept problems in the order of the file. */
  inOrder(): LoadProblem[] {
    return this.kept.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0));
  }

  private note(problem: LoadProblem): void {
    this.total += 1;
    this.latest = problem;
    if (this.kept.length < PROBLEMS_MAX) this.kept.push(problem);
  }
}
