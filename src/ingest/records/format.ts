import type { Problems } from './problems.ts';
import type { SourceFile } from './source-file.ts';
import type { PointLines, SourceRecord } from './source-record.ts';

/** The file that a format reads, and the problems that it reports. */
export interface ReadContext {
  readonly file: SourceFile;
  /** Receives the problems of rows that yield no record. */
  readonly problems: Problems;
}

/** One kind of file, and how it is read. */
export interface FileFormat {
  /**
   * Formats whose vintages are compared with this one: an older edition never overwrites the values
   * of a newer edition in one of them.
   */
  readonly lineage: readonly string[];
  /** True if a load needs a vintage, from the file or from the request. */
  readonly needsVintage: boolean;
  /**
   * `vintage` if the file states no publication times of corrections. A correction then counts as
   * published on the day of its edition, at 00:00 UTC.
   */
  readonly correctedAt?: 'vintage';
  /** SHA-256 of the mapping. The same file with another mapping is another load. */
  readonly mappingSha256?: Buffer;
  /** Publisher of the rates, a slug of `fx_source`; absent for prices. */
  readonly source?: RatePublisher | undefined;
  /**
   * Sorts files that are loaded together: editions from the oldest on, so that each revision
   * follows what it revises. Without this function the given order is kept.
   * @throws errors of the file system
   */
  inOrder?(paths: readonly string[]): Promise<string[]>;
  /** Yields the records of a file in file order, in batches, or lines that may hold points. */
  read(context: ReadContext): AsyncGenerator<readonly SourceRecord[] | PointLines>;
}

/** A publisher of exchange rates. The load creates it if the database lacks it. */
export interface RatePublisher {
  readonly slug: string;
  readonly name: string;
  readonly base: string;
}
