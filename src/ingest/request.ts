import type { OnHeld } from '../db/connection.ts';
import type { Format } from './formats/format.ts';
import type { FormatName } from './formats/formats.ts';
import type { LoadCounts } from './ledger.ts';
import type { LoadPreview } from './preview.ts';
import type { LoadProblem } from './rejects/problems.ts';

/** How far a load is: it reads, then compares with the database, then writes. */
export interface LoadProgress {
  /** A file is hashed before it is read, and once more after it. */
  readonly step: 'hashing' | 'reading' | 'comparing' | 'writing';
  /** Values and descriptions that were read. */
  readonly rows: number;
  /** Of the file, or of the part of an archive that is being read. */
  readonly bytes: number;
  readonly bytesTotal: number | null;
}

export interface LoadRequest {
  readonly format: FormatName;
  /** Reads the file in place of the format's own reader, with what the caller knows of it. */
  readonly reader?: Format | undefined;
  /** Path of the file. */
  readonly file: string;
  /** Who loads it. */
  readonly actor: string;
  /** The edition of a file that does not state it, YYYY-MM-DD. */
  readonly vintage?: string | undefined;
  /** Whether published values may change; needs a reason as well. */
  readonly allowCorrections?: boolean | undefined;
  readonly reason?: string | undefined;
  /**
   * How much neighbouring values may differ: a factor greater than 1, as decimal text. More is
   * refused unless `acceptJumps`.
   */
  readonly jumpFactor: string;
  readonly acceptJumps?: boolean | undefined;
  /** Where rejected rows are written, so that the others are loaded; without it any refuses all. */
  readonly rejects?: { readonly file: string; readonly overwrite: boolean } | undefined;
  /** Stops before anything is written, also into the ledger. */
  readonly dryRun?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: LoadProgress) => void) | undefined;
  /** Called with the sessions that hold the lock of writers, when the wait for it takes long. */
  readonly onHeld?: OnHeld | undefined;
  /** Told, and waited for, before the load does what it tells, also when it is refused then. */
  readonly onPreview?: ((preview: LoadPreview) => void | Promise<void>) | undefined;
}

/** What became of a load. */
export interface LoadReport {
  /**
   * `applied`: the data changed, in one revision. `unchanged`: everything was there already, or
   * is outdated. `already-loaded`: this very file was loaded before. `refused`: nothing changed,
   * `errors` say why. `previewed`: a dry run, which changed nothing.
   */
  readonly status: 'applied' | 'already-loaded' | 'unchanged' | 'refused' | 'previewed';
  /**
   * Its number in the ledger; of a file that was loaded before, the number it has there. A dry run
   * has none.
   */
  readonly batch: number | null;
  /** As an answer of the service shows it; null when nothing changed. */
  readonly revision: string | null;
  readonly vintage: string | null;
  readonly counts: LoadCounts;
  /** The first of them, in the order of the file. */
  readonly errors: readonly (LoadProblem & { readonly file: string })[];
  readonly errorsTotal: number;
  /** What the load was found to do; null when that was not found out. */
  readonly preview: LoadPreview | null;
  /** The file of rejected rows, when there are any and it was asked for. */
  readonly rejects: string | null;
}
