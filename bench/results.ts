import type { CodedSize } from './contenders.ts';
import type { FormCost } from './formats.ts';
import type { SizeCost, TableCost } from './growth.ts';
import type { Failure } from './many-connections.ts';
import type { Sample } from './measure.ts';
import type { PerRound } from './per-round.ts';

/** Everything that one run of the benchmark measured. */
export interface Results extends PerRound {
  /** Machine, versions, date. */
  readonly machine: string;
  readonly samples: readonly Sample[];
  /** The sizes of compressed answers. */
  readonly coded: readonly CodedSize[];
  /** Failures over many connections. */
  readonly failures: readonly Failure[];
  readonly rowsPerSecond: number;
  readonly copiedPerSecond: number;
  readonly firstLoadSeconds: number;
  readonly correctionSeconds: number;
  /** Peak memory of the service in the whole run. */
  readonly peakBytes: number;
  readonly sizes: readonly SizeCost[];
  readonly tables: readonly TableCost[];
  /** None in a quick run. */
  readonly formats: readonly FormCost[];
}
