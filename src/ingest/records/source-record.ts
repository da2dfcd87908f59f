import { DIMENSIONS } from '../../catalog/dimensions.ts';

/*
 * The words of a load: the records that all formats yield (this file), the file that is read, the
 * problems that are reported. Values of records are unvalidated text of the file;
 * `staging/validate.ts` validates them.
 */

/** The fields of a point. */
export type PointField = 'code' | 'date' | 'low' | 'mid' | 'high' | 'publishedAt';

/** Maps the fields of a point to the column names of its file. */
export interface PointPlaces {
  nameOf(field: PointField, line: number): string;
}

/** The currency and unit in which a file quotes its values, as far as they are known. */
export interface Quotation {
  /** ISO code. */
  readonly currency: string | null;
  /** Name, symbol or id of a unit of measure. */
  readonly unit: string | null;
  /** Currency and unit as published, for messages: `USc per lb`. */
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
  /** Present if the columns of the file have names of their own. */
  readonly places?: PointPlaces;
  /** Low, mid and high as written in the file, if they are stored differently. */
  readonly written?: string | null;
  /** The currency and unit that the price must have, if the file states them. */
  readonly quotation?: Quotation | null;
}

/** Place of a description: a line, and the file if it is not the loaded file. */
interface Described {
  readonly line: number;
  readonly file?: string;
}

/** Units of a currency for one unit of the base currency of the source, on a date. */
export interface RateRecord {
  readonly kind: 'rate';
  readonly line: number;
  readonly currency: string;
  readonly date: string;
  readonly rate: string;
}

/** The attributes of a price, by their names in an answer. */
export type Attributes = Readonly<Record<string, string | null>>;

/** The description of a price, from which it can be created. */
export interface PriceRecord extends Described {
  readonly kind: 'price';
  readonly code: string;
  readonly attributes: Attributes;
  /** For an existing price: `keep` ignores the description, `compare` requires the same one. */
  readonly whenPresent: 'keep' | 'compare';
}

/** A product, created if its market lacks it. */
export interface ProductRecord extends Described {
  readonly kind: 'product';
  readonly market: string;
  readonly name: string;
  readonly alias: string;
  readonly chemicalCode: string;
  readonly isSustainable: boolean;
}

/** A dimension value, created if the dimension lacks it. */
export interface ValueRecord extends Described {
  readonly kind: 'value';
  /** The field of a record: `purity`, `cellFormat` … */
  readonly dimension: string;
  readonly name: string;
}

/** The edition of the file, as the file states it. */
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

/** The index of each field of a point in a line of a file; -1 for absent fields. */
export interface PointFieldIndexes extends Readonly<Record<PointField, number>> {
  /** Number of fields of a line. */
  readonly width: number;
}

/** Whole lines of a CSV file without a quotation mark; most of them are points. */
export interface PointLines {
  /** Number of the first line. */
  readonly line: number;
  /** The lines, without the end of the last one. */
  readonly bytes: Buffer;
  readonly columns: PointFieldIndexes;
  /** Reads one of the lines as records, and reports its problems. */
  recordsOf(line: number, bytes: Buffer): readonly SourceRecord[];
}

/** Low, mid and high as readable text. */
export const valuesText = (...values: readonly (string | null)[]): string =>
  values.filter((value) => value !== null).join(' / ');

/** Record fields that are dimensions of at least one market. */
export const DIMENSION_FIELDS: readonly string[] = Object.values(DIMENSIONS).map(
  (each) => each.field,
);

/** Attributes whose text is JSON. */
export const JSON_ATTRIBUTES: readonly string[] = ['specification', 'reference'];

/** Attributes that a file may state for a price besides its code, by their names in an answer. */
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
  'observes',
  'vatCountry',
  'reference',
  ...DIMENSION_FIELDS,
];

/** Fields that a file states for a point. */
export const POINT_FIELDS: readonly string[] = [
  'code',
  'date',
  'low',
  'mid',
  'high',
  'publishedAt',
];

/** True if a text is a valid price code; the table `price` has the same rule. */
export const isCode = (text: string): boolean => /^[!-~]{1,64}$/.test(text);
