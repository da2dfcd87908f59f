import type { Format } from './format.ts';
import type { FormatName } from './formats.ts';
import type { LoadCounts } from './ledger.ts';
import type { LoadProblem } from './problems.ts';

/** How far a load is. */
export interface LoadProgress {
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
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: LoadProgress) => void) | undefined;
}

/** What became of a load. */
export interface LoadReport {
  /**
   * `applied`: the data changed, in one revision. `unchanged`: everything was there already, or
   * is outdated. `already-loaded`: this very file was loaded before. `refused`: nothing changed,
   * `errors` say why.
   */
  readonly status: 'applied' | 'already-loaded' | 'unchanged' | 'refused';
  /** Its number in the ledger; of a file that was loaded before, the number it has there. */
  readonly batch: number | null;
  /** As an answer of the service shows it; null when nothing changed. */
  readonly revision: string | null;
  readonly vintage: string | null;
  readonly counts: LoadCounts;
  /** The first of them, in the order of the file. */
  readonly errors: readonly (LoadProblem & { readonly file: string })[];
  readonly errorsTotal: number;
}
