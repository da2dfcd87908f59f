import type { Beside } from './beside.ts';
import type { Failure } from './crowds.ts';
import type { SizeCost, TableCost } from './growth.ts';
import type { Sample } from './measure.ts';

/** Everything that one run of the benchmark measured. */
export interface Results extends Beside {
  /** Machine, versions, date. */
  readonly machine: string;
  readonly samples: readonly Sample[];
  /** What was not answered over many connections. */
  readonly failures: readonly Failure[];
  readonly rowsPerSecond: number;
  readonly copiedPerSecond: number;
  readonly firstLoadSeconds: number;
  readonly correctionSeconds: number;
  /** Most memory that the service held in the whole run. */
  readonly peakBytes: number;
  readonly sizes: readonly SizeCost[];
  readonly tables: readonly TableCost[];
}
