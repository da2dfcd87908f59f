interface SeedUnit {
  readonly name: string;
  readonly symbol: string;
  /** Code of UNECE Recommendation 20; null where it has none. */
  readonly rec20: string | null;
  /** Units convert inside one dimension only. */
  readonly dimension: string;
  /** Exact factor to the base of the dimension: kg, kg contained, kWh, piece or percent. */
  readonly factor: string;
}

const unit = (
  name: string,
  symbol: string,
  rec20: string | null,
  dimension: string,
  factor: string,
): SeedUnit => ({ name, symbol, rec20, dimension, factor });

/**
 * Units of measure by slug. Mass factors are exact by definition: the international pound of
 * 1959, the troy ounce of 480 grains. Dry and wet tonnes differ by moisture and the content
 * units by grade, so each is a dimension of its own.
 */
export const UNITS = {
  tonne: unit('Tonne', 't', 'TNE', 'mass', '1000'),
  kilogram: unit('Kilogram', 'kg', 'KGM', 'mass', '1'),
  gram: unit('Gram', 'g', 'GRM', 'mass', '0.001'),
  pound: unit('Pound', 'lb', 'LBR', 'mass', '0.45359237'),
  'short-ton': unit('Short ton', 'st', 'STN', 'mass', '907.18474'),
  'long-ton': unit('Long ton', 'lt', 'LTN', 'mass', '1016.0469088'),
  'troy-ounce': unit('Troy ounce', 'oz t', 'APZ', 'mass', '0.0311034768'),
  ounce: unit('Ounce', 'oz', 'ONZ', 'mass', '0.028349523125'),
  'dry-metric-tonne': unit('Dry metric tonne', 'dmt', null, 'mass-dry', '1000'),
  'wet-metric-tonne': unit('Wet metric tonne', 'wmt', null, 'mass-wet', '1000'),
  'metric-ton-unit': unit('Metric ton unit', 'mtu', null, 'content', '10'),
  'short-ton-unit': unit('Short ton unit', 'stu', null, 'content', '9.0718474'),
  'long-ton-unit': unit('Long ton unit', 'ltu', null, 'content', '10.160469088'),
  'dry-metric-ton-unit': unit('Dry metric ton unit', 'dmtu', null, 'content-dry', '10'),
  'watt-hour': unit('Watt hour', 'Wh', 'WHR', 'energy', '0.001'),
  'kilowatt-hour': unit('Kilowatt hour', 'kWh', 'KWH', 'energy', '1'),
  'megawatt-hour': unit('Megawatt hour', 'MWh', 'MWH', 'energy', '1000'),
  piece: unit('Piece', 'pc', 'H87', 'count', '1'),
  percent: unit('Percent', '%', 'P1', 'ratio', '1'),
} as const;

export type UnitSlug = keyof typeof UNITS;
