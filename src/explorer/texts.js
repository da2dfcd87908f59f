// Texts that several components show.

/** `1 price`, `2 prices`. */
export const counted = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

/** The currency and unit of numbers: `USD/t`, `%`. */
export function unitText({ currency, unitOfMeasure }) {
  const unit = unitOfMeasure?.symbol ?? unitOfMeasure?.name ?? '';
  return currency ? `${currency.iso}/${unit}` : unit;
}

/** True for a price that is a percentage of a reference price. */
export const isPayable = ({ currency }) => currency === null;

/** The location of a price: its country and region, if it has them. */
export const placeText = ({ country, region }) =>
  [country?.name, region?.name].filter(Boolean).join(', ');

/** Placeholder of a missing value. */
export const NOTHING = '–';
