import type { Problems } from './problems.ts';
import type { SourceFile } from './source-file.ts';
import type { SourceRecord } from './source-record.ts';

/** What a format reads with. */
export interface ReadContext {
  readonly file: SourceFile;
  /** Where a reader notes what it cannot even hand on as a record. */
  readonly problems: Problems;
}

/** One kind of file. */
export interface FileFormat {
  /**
   * The formats whose vintages are compared with its own: an older edition never overwrites what
   * a newer one of these brought.
   */
  readonly lineage: readonly string[];
  /** Whether a load must know the edition, from the file or from the caller. */
  readonly needsVintage: boolean;
  /**
   * `vintage` when the file does not say when a value was published: a correction then counts as
   * published on the day of the edition that brings it, at 00:00 UTC.
   */
  readonly correctedAt?: 'vintage';
  /** SHA-256 of the mapping with which it reads: another mapping makes another load of a file. */
  readonly mappingSha256?: Buffer;
  /** For rates: who published them, a slug of `fx_source`. */
  readonly source?: RateSource | undefined;
  /**
   * Files that are given together, in the order to load them: editions from the oldest on, so that
   * each revision comes after what it revises. Without it, as they are given.
   * @throws errors of the file system
   */
  inOrder?(paths: readonly string[]): Promise<string[]>;
  /** The records of a file, in its order, some at a time. */
  read(context: ReadContext): AsyncGenerator<readonly SourceRecord[]>;
}

/** A publisher of exchange rates, made when the database does not have it. */
export interface RateSource {
  readonly slug: string;
  readonly name: string;
  readonly base: string;
}
