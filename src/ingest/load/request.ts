import type { OnHeld } from '../../db/connection.ts';
import { Descriptions } from '../descriptions/descriptions.ts';
import { NO_PRICE_CHANGES, type PriceChange, type PriceChanges } from '../descriptions/prices.ts';
import type { FormatName } from '../formats/formats.ts';
import type { FileFormat } from '../records/format.ts';
import type { LoadProblem } from '../records/load-error.ts';
import { Problems } from '../records/problems.ts';
import type { RejectsFile } from '../records/rejects-file.ts';
import type { SourceFile } from '../records/source-file.ts';
import { type Listed, POINTS, ratesOf, type ValueChange } from '../staging/change-set.ts';
import type { ClassifiedCounts, NewValues } from '../staging/compare.ts';
import { SeriesQuotations } from '../staging/quotations.ts';
import { SeriesNames, SeriesRanges } from '../staging/series.ts';
import type { StagedFile } from '../staging/stage.ts';
import type { Bounds } from '../staging/validate.ts';

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

/** What a load will do, told before it does it. */
export interface LoadPreview {
  readonly newPrices: Listed<{ readonly code: string; readonly name: string | null }>;
  /** One entry for each attribute that changes. */
  readonly changedPrices: Listed<PriceChange>;
  /** Products and values of dimensions that are added. */
  readonly newNames: Listed<{ readonly kind: string; readonly name: string }>;
  readonly newCurrencies: readonly string[];
  /** By price or currency, in the order of codes; `values` is the sum of them all. */
  readonly newValues: Listed<NewValues> & { readonly values: number };
  /** In the order of codes and dates. */
  readonly corrections: Listed<ValueChange>;
  /** Values on days whose value was withdrawn, which are published again. */
  readonly again: Listed<Omit<ValueChange, 'before'>>;
  readonly unchanged: number;
  /** Left alone: a newer edition brought another value, or it was withdrawn. */
  readonly outdated: number;
  readonly rejected: number;
}

/**
 * What became of the values of a file: rows is the sum of the five that follow it. Of a refused
 * file only those that have a fault are counted, each once.
 */
export interface LoadCounts extends ClassifiedCounts {
  readonly rows: number;
  readonly rejected: number;
  readonly pricesAdded: number;
  readonly pricesChanged: number;
  /** Of a withdrawal or an undo. */
  readonly withdrawn?: number;
  /** Of an undo. */
  readonly pricesRemoved?: number;
}

/** Counts of what changes nothing. */
export const NO_COUNTS: LoadCounts = {
  rows: 0,
  inserted: 0,
  unchanged: 0,
  corrected: 0,
  outdated: 0,
  rejected: 0,
  pricesAdded: 0,
  pricesChanged: 0,
};

/** The common members of a request for a load, a withdrawal and an undo. */
export interface ChangeRequest<Preview> {
  /** Account that makes the change. */
  readonly actor: string;
  readonly reason: string;
  /** Stops before anything is written, also into the ledger. */
  readonly dryRun?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with the sessions that hold the lock of writers, when the wait for it takes long. */
  readonly onHeld?: OnHeld | undefined;
  /** Called with what the change will do, and waited for, before anything is written. */
  readonly onPreview?: ((preview: Preview) => void | Promise<void>) | undefined;
}

export interface LoadRequest extends Omit<ChangeRequest<LoadPreview>, 'reason'> {
  readonly format: FormatName;
  /** Reads the file in place of the format's own reader, with what the caller knows of it. */
  readonly reader?: FileFormat | undefined;
  /** Path of the file. */
  readonly file: string;
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
  readonly onProgress?: ((progress: LoadProgress) => void) | undefined;
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

/** What is known of a load once its file is open. */
export interface OpenedLoad {
  readonly request: Omit<LoadRequest, 'format' | 'reader'>;
  /** In the ledger; `withdraw` takes points out instead of bringing them. */
  readonly formatName: FormatName | 'withdraw';
  readonly format: FileFormat;
  readonly file: SourceFile;
  /** Of the file as it was before it was read. */
  readonly sha256: Buffer;
  /** When the load began, by the clock of the server and in its notation. */
  readonly startedAt: string;
  readonly bounds: Bounds;
}

/** One load from its request to its report: each step adds what it has found out. */
export interface Load extends OpenedLoad, StagedFile {
  readonly reason: string | null;
  /** Whether published values may change: permission and reason were given. */
  readonly mayCorrect: boolean;
  readonly rejects: RejectsFile | null;

  /** Currencies that the load adds. */
  currencies: readonly string[];
  prices: PriceChanges;
  counts: LoadCounts;
  preview: LoadPreview | null;
}

/** A load of which nothing has been read. */
export function newLoad(opened: OpenedLoad, rejects: RejectsFile | null): Load {
  const { request, format } = opened;
  const problems = new Problems(rejects);
  const reason = request.reason?.trim() || null;
  return {
    ...opened,
    reason,
    mayCorrect: request.allowCorrections === true && reason !== null,
    mayJump: request.acceptJumps === true,
    withdraws: opened.formatName === 'withdraw',
    target: format.source ? ratesOf(format.source) : POINTS,
    rejects,
    problems,
    series: new SeriesNames(),
    descriptions: new Descriptions(problems),
    ranges: new SeriesRanges(request.jumpFactor),
    terms: new SeriesQuotations(problems),
    places: [],
    vintage: null,
    rows: 0,
    rowsRead: 0,
    currencies: [],
    prices: NO_PRICE_CHANGES,
    counts: NO_COUNTS,
    preview: null,
  };
}
