import type { Market } from '../../catalog/markets.ts';
import type { DataRevision } from '../../db/revisions.ts';
import type { SelectedPrice } from '../market/query.ts';
import type { RateSource } from '../market/rates.ts';
import type { MarketReader } from '../market/reader.ts';
import type { References } from '../market/references.ts';
import type { CalculationPlan } from './plan.ts';

/** A market that is open for a calculation, at one revision. */
export interface OpenMarket {
  readonly market: Market;
  readonly reader: MarketReader;
  readonly data: DataRevision;
  /** The prices of the inputs that the market has, by the keys of their codes. */
  readonly prices: ReadonlyMap<string, SelectedPrice>;
}

/** All that a calculation reads, at one revision. */
export interface CalculationData {
  /** The plan with the inputs of references, for each run of anchors with the same ones. */
  readonly plans: readonly CalculationPlan[];
  readonly markets: readonly OpenMarket[];
  readonly references: References;
  /** The newest revision of all scopes that are read. */
  readonly data: DataRevision;
  readonly source: RateSource | null;
}
