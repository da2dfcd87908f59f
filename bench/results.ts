import type { Bare, FirstTime, Freshness } from './extras.ts';
import type { SizeCost, TableCost } from './growth.ts';
import type { Sample } from './measure.ts';

/** Everything that one run of the benchmark measured. */
export interface Results {
  /** Machine, versions, date. */
  readonly machine: string;
  readonly samples: readonly Sample[];
  /** The statement of W2 by itself, 16 connections; null where there is no pgbench. */
  readonly bare: Bare | null;
  readonly downloads: {
    readonly alone: { readonly p50: number; readonly p99: number };
    readonly beside: { readonly p50: number; readonly p99: number };
  };
  readonly slowReaderBytes: number;
  readonly notModifiedMs: number;
  readonly firstTime: FirstTime;
  readonly fresh: Freshness;
  readonly startSeconds: number;
  readonly rowsPerSecond: number;
  readonly sizes: readonly SizeCost[];
  readonly tables: readonly TableCost[];
}
