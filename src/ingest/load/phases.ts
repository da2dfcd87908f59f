import type { LoadCounts } from '../../db/ledger.ts';
import type { PriceChanges } from '../descriptions/prices.ts';
import type { FormatName } from '../formats/formats.ts';
import type { FileFormat } from '../records/format.ts';
import type { Problems } from '../records/problems.ts';
import type { SourceFile } from '../records/source-file.ts';
import type { ChangeTarget } from '../staging/change-set.ts';
import type { StagedContent } from '../staging/stage.ts';
import type { Bounds } from '../staging/validate.ts';
import type { LoadPreview, LoadRequest } from './request.ts';

/*
 * A load or withdrawal after each of its phases. Nothing is assigned later. Only `problems`
 * collects, from the staging on.
 */

/** A load whose file is open. */
export interface OpenedLoad {
  readonly request: Pick<LoadRequest, 'actor' | 'reason' | 'dryRun' | 'signal' | 'onProgress'>;
  readonly reason: string | null;
  /** Format in the ledger; `withdraw` for a withdrawal. */
  readonly formatName: FormatName | 'withdraw';
  readonly format: FileFormat;
  readonly file: SourceFile;
  readonly target: ChangeTarget;
  /** SHA-256 of the file before reading. */
  readonly sha256: Buffer;
  /** Start of the load by the clock of the database server, in its notation. */
  readonly startedAt: string;
  readonly bounds: Bounds;
}

/** A load whose values are in the staging tables. */
export interface StagedLoad extends OpenedLoad, StagedContent {
  readonly problems: Problems;
  /** The edition that the file or the request states; null for none, or an invalid one. */
  readonly vintage: string | null;
}

/** A load whose changes are known. */
export interface ClassifiedLoad<Preview = LoadPreview> extends StagedLoad {
  /** Currencies that the load adds. */
  readonly currencies: readonly string[];
  readonly prices: PriceChanges;
  readonly counts: LoadCounts;
  readonly preview: Preview;
}

/** Rolls the transaction back; the problems of the load state why. */
export class LoadRefused extends Error {
  override readonly name = 'Refused';
  readonly load: StagedLoad & Partial<Pick<ClassifiedLoad, 'preview'>>;

  constructor(load: LoadRefused['load']) {
    super();
    this.load = load;
  }
}
