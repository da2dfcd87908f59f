import type { OnHeld } from '../../db/connection.ts';
import type { LoadCounts } from '../../db/ledger.ts';
import type { PriceChange } from '../descriptions/prices.ts';
import type { FormatName } from '../formats/formats.ts';
import type { FileFormat } from '../records/format.ts';
import type { LoadProblem } from '../records/load-error.ts';
import type { Listed, ValueChange } from '../staging/change-set.ts';
import type { NewValues } from '../staging/compare.ts';
import type { StageProgress } from '../staging/stage.ts';

/** Progress of a load: it hashes, reads, compares and writes. */
export interface LoadProgress extends StageProgress {
  /** The file is hashed before and after reading. */
  readonly step: 'hashing' | 'reading' | 'comparing' | 'writing';
}

/** The changes that a load will make, reported before they are written. */
export interface LoadPreview {
  readonly newPrices: Listed<{ readonly code: string; readonly name: string | null }>;
  /** One entry for each changed attribute. */
  readonly changedPrices: Listed<PriceChange>;
  /** New products and dimension values. */
  readonly newNames: Listed<{ readonly kind: string; readonly name: string }>;
  readonly newCurrencies: readonly string[];
  /** By price or currency, sorted by code; `values` is the total number of values. */
  readonly newValues: Listed<NewValues> & { readonly values: number };
  /** Sorted by code and date. */
  readonly corrections: Listed<ValueChange>;
  /** Values on days whose value was withdrawn; they are published again. */
  readonly again: Listed<Omit<ValueChange, 'before'>>;
  readonly unchanged: number;
  /** Not changed: a newer edition holds another value, or it was withdrawn. */
  readonly outdated: number;
  readonly rejected: number;
}

/** Common members of the requests for a load, a withdrawal and an undo. */
export interface ChangeRequest<Preview> {
  /** Account that makes the change. */
  readonly actor: string;
  readonly reason: string;
  /** Stops before anything is written, including the ledger row. */
  readonly dryRun?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with the sessions that hold the write lock, if the wait for it takes long. */
  readonly onHeld?: OnHeld | undefined;
  /** Called with the preview and awaited before anything is written. */
  readonly onPreview?: ((preview: Preview) => void | Promise<void>) | undefined;
}

export interface LoadRequest extends Omit<ChangeRequest<LoadPreview>, 'reason'> {
  readonly format: FormatName;
  /** Reads the file instead of the format's own reader. */
  readonly reader?: FileFormat | undefined;
  /** Path of the file. */
  readonly file: string;
  /** The vintage of a file that does not state it, YYYY-MM-DD. */
  readonly vintage?: string | undefined;
  /** Allows corrections of published values; requires a reason. */
  readonly allowCorrections?: boolean | undefined;
  readonly reason?: string | undefined;
  /**
   * Largest factor between neighbouring values, greater than 1, as decimal text. A larger one is a
   * jump, which is rejected unless `acceptJumps`.
   */
  readonly jumpFactor: string;
  readonly acceptJumps?: boolean | undefined;
  /** True for a preview with all entries of its lists, however many. */
  readonly previewAll?: boolean | undefined;
  /** Path of the rejects file. Without it, any rejected row refuses the load. */
  readonly rejects?: { readonly file: string; readonly overwrite: boolean } | undefined;
  readonly onProgress?: ((progress: LoadProgress) => void) | undefined;
}

/** Result of a load. */
export interface LoadReport {
  /**
   * `applied`: the data changed, in one revision. `unchanged`: all values exist already or are
   * outdated. `already-loaded`: the same file was loaded before. `refused`: nothing changed,
   * `errors` states why. `previewed`: a dry run, nothing changed.
   */
  readonly status: 'applied' | 'already-loaded' | 'unchanged' | 'refused' | 'previewed';
  /**
   * Number of the batch; for an already loaded file that of the earlier batch. null for a dry run.
   */
  readonly batch: number | null;
  /** In the wire format; null if nothing changed. */
  readonly revision: string | null;
  readonly vintage: string | null;
  readonly counts: LoadCounts;
  /** The first errors, in file order. */
  readonly errors: readonly (LoadProblem & { readonly file: string })[];
  readonly errorsTotal: number;
  /** null if the load was not classified. */
  readonly preview: LoadPreview | null;
  /** Path of the rejects file, if one was requested and rows were rejected. */
  readonly rejects: string | null;
}
