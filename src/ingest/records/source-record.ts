import { DIMENSIONS } from '../../catalog/dimensions.ts';

/**
 * What every format is read into. All values are text as the file has it; `stage.ts` decides
 * whether they are right.
 */

/** The parts of a point. */
export type PointField = 'code' | 'date' | 'low' | 'mid' | 'high' | 'publishedAt';

/** Where a reader found the parts of a point, in the words of its file. */
export interface PointPlaces {
  nameOf(field: PointField, line: number): string;
}

/** The currency and unit that the values of a file are in, as far as they are known. */
export interface Quotation {
  /** ISO code. */
  readonly currency: string | null;
  /** Name, symbol or id of a unit of measure. */
  readonly unit: string | null;
  /** As published, for messages: `USc per lb`. */
  readonly published: string;
}

/** The value of a price on a date. */
export interface PointRecord {
  readonly kind: 'point';
  readonly line: number;
  readonly code: string;
  readonly date: string;
  readonly low: string | null;
  readonly mid: string | null;
  readonly high: string | null;
  /** RFC 3339; null for the time of the load. */
  readonly publishedAt: string | null;
  /** Where the columns of the file have names of their own. */
  readonly places?: PointPlaces;
  /** Low, mid and high as they stand in the file, where that is not how they are stored. */
  readonly written?: string | null;
  /** The terms that the price must have, where the file is known to be in some. */
  readonly terms?: Quotation | null;
}

/** A description that does not stand in the file itself: the file that it stands in. */
interface Described {
  readonly line: number;
  readonly file?: string;
}

/** Units of a currency for one of the base currency of the source, on a date. */
export interface RateRecord {
  readonly kind: 'rate';
  readonly line: number;
  readonly currency: string;
  readonly date: string;
  readonly rate: string;
}

/** The attributes of a price, by the name that they have in an answer. */
export type Attributes = Readonly<Record<string, string | null>>;

/** A price that is described, so that it can be created. */
export interface PriceRecord extends Described {
  readonly kind: 'price';
  readonly code: string;
  readonly attributes: Attributes;
  /** Of a price that exists: `keep` leaves it alone, `compare` asks for the same description. */
  readonly whenPresent: 'keep' | 'compare';
}

/** A product that is made when its market does not have it. */
export interface ProductRecord extends Described {
  readonly kind: 'product';
  readonly market: string;
  readonly name: string;
  readonly alias: string;
  readonly chemicalCode: string;
  readonly isSustainable: boolean;
}

/** A value of a dimension that is made when the dimension does not have it. */
export interface ValueRecord extends Described {
  readonly kind: 'value';
  /** The field of a record: `purity`, `cellFormat` … */
  readonly dimension: string;
  readonly name: string;
}

/** What the file says about itself: the day of its edition. */
interface VintageRecord {
  readonly kind: 'vintage';
  readonly date: string;
}

export type SourceRecord =
  | PointRecord
  | RateRecord
  | PriceRecord
  | ProductRecord
  | ValueRecord
  | VintageRecord;

/** Low, mid and high as a person reads them. */
export const valuesText = (...values: readonly (string | null)[]): string =>
  values.filter((value) => value !== null).join(' / ');

/** The fields of a record that are dimensions of some market. */
export const DIMENSION_FIELDS: readonly string[] = Object.values(DIMENSIONS).map(
  (each) => each.field,
);

/** What a file may say about a price besides its code, by the names of an answer. */
export const ATTRIBUTES: readonly string[] = [
  'market',
  'name',
  'shortName',
  'product',
  'priceCategory',
  'priceType',
  'frequency',
  'currency',
  'unitOfMeasure',
  'assessmentLaunchedAt',
  'specification',
  ...DIMENSION_FIELDS,
];

/** What a file says of a point. */
export const POINT_FIELDS: readonly string[] = [
  'code',
  'date',
  'low',
  'mid',
  'high',
  'publishedAt',
];

/** Whether a text can be the code of a price; the table of prices has the same rule. */
export const isCode = (text: string): boolean => /^[!-~]{1,64}$/.test(text);
