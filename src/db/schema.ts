import type { ColumnType, Generated, GeneratedAlways } from 'kysely';
import type { Observes } from '../catalog/analytics.ts';
import type { PayableReference } from '../catalog/payable-reference.ts';

/** The revision that wrote a row, set by a default and triggers. */
type Revision = ColumnType<string, never, never>;

interface MarketRow {
  id: GeneratedAlways<number>;
  slug: string;
  name: string;
}

export interface Currency {
  id: GeneratedAlways<number>;
  uuid: string;
  iso: string;
  name: string;
  symbol: string;
  revision: Revision;
}

export interface UnitOfMeasure {
  id: GeneratedAlways<number>;
  uuid: string;
  slug: string;
  name: string;
  symbol: string;
  name_key: string;
  symbol_key: string;
  rec20: string | null;
  dimension: string;
  factor: string;
  revision: Revision;
}

export interface DimensionValue {
  id: GeneratedAlways<number>;
  uuid: string;
  kind: string;
  slug: string;
  name: string;
  short_name: string | null;
  match_key: string;
  revision: Revision;
}

export interface Product {
  id: GeneratedAlways<number>;
  uuid: string;
  market_id: number;
  slug: string;
  name: string;
  alias: string;
  chemical_code: string;
  is_sustainable: boolean;
  match_key: string;
  revision: Revision;
}

/** Another name for search: a price with all words in one attribute is found by the alias too. */
export interface SearchAlias {
  id: GeneratedAlways<number>;
  words: string;
  alias: string;
  revision: Revision;
}

export interface SpecificationEntry {
  name: string;
  value: string;
  order: number;
}

/** The columns of `price` that refer to `dimension_value`. */
export interface PriceDimensions {
  price_category_id: number;
  frequency_id: number;
  purity_id: number | null;
  grade_id: number | null;
  capacity_id: number | null;
  cell_format_id: number | null;
  mesh_size_id: number | null;
  sub_product_id: number | null;
  feedstock_id: number | null;
  incoterm_id: number | null;
  country_id: number | null;
  region_id: number | null;
  trade_type_id: number | null;
  service_id: number | null;
}

export interface PriceRow extends PriceDimensions {
  id: GeneratedAlways<number>;
  market_id: number;
  code: string;
  code_key: string;
  price_type: 'price' | 'payable';
  currency_id: number | null;
  unit_id: number;
  unit_dimension: string;
  product_id: number;
  name: string;
  short_name: string | null;
  specification: ColumnType<SpecificationEntry[], string, string>;
  assessment_launched_at: string | null;
  /** The kind of a value. Null, if never stated, is a day. */
  observes: Observes | null;
  /** ISO 3166 code of the country whose VAT the values include; null if not known to. */
  vat_country: string | null;
  /** In the order of their first days; null if unknown, and for prices. */
  payable_reference: ColumnType<PayableReference[] | null, string | null, string | null>;
  revision: Revision;
}

/** One point. Values are decimal text; `published_at` is PostgreSQL's text of an instant. */
interface Series {
  price_id: number;
  date: string;
  low: string | null;
  mid: string;
  high: string | null;
  published_at: string;
  corrections: Generated<number>;
  batch_id: number | null;
  revision: Revision;
}

interface FxSource {
  slug: string;
  name: string;
  base_currency_id: number;
  is_sample: Generated<boolean>;
}

interface LoadBatch {
  id: GeneratedAlways<number>;
  format: string;
  file_name: string;
  sha256: Buffer;
  status: 'applied' | 'refused';
  undone_by: GeneratedAlways<number | null>;
}

interface AccessScope {
  scope: string;
  market_id: number | null;
}

interface ApiKey {
  id: GeneratedAlways<number>;
  public_id: string;
  name: string;
  owner: string | null;
  digest: Buffer;
  digest_alg: Generated<number>;
  created_at: Generated<string>;
  expires_at: string | null;
  revoked_at: string | null;
  revoked_reason: string | null;
  rate_per_minute: number | null;
  rate_burst: number | null;
  concurrent: number | null;
  replaced_by: number | null;
}

interface ApiKeyScope {
  api_key_id: number;
  scope: string;
}

interface KeyUse {
  public_id: string;
  last_used_at: string;
}

interface KeyAudit {
  id: Generated<string>;
  at: string;
  actor: string;
  /** Login of the session, by default; null in rows from before the column. */
  account: Generated<string | null>;
  action: string;
  public_id: string;
  before: unknown;
  after: unknown;
  reason: string | null;
}

/** The tables that statements of Kysely's query builder use. */
export interface Database {
  market: MarketRow;
  currency: Currency;
  unit_of_measure: UnitOfMeasure;
  dimension_value: DimensionValue;
  product: Product;
  search_alias: SearchAlias;
  price: PriceRow;
  series: Series;
  fx_source: FxSource;
  load_batch: LoadBatch;
  access_scope: AccessScope;
  api_key: ApiKey;
  api_key_scope: ApiKeyScope;
  key_use: KeyUse;
  key_audit: KeyAudit;
  /** Superseded rows. */
  price_history: PriceRow & { revision_to: string };
}
