// Texts that several components show.

/** `1 price`, `2 prices`. */
export const counted = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

/** `priceCategories` → `Price categories`. */
export const titleOf = (member) => {
  const words = member.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
};

/** The currency and unit of numbers: `USD/t`, `%`. */
export function unitText({ currency, unitOfMeasure }) {
  const unit = unitOfMeasure?.symbol ?? unitOfMeasure?.name ?? '';
  return currency ? `${currency.iso}/${unit}` : unit;
}

/** True for a price that is a percentage of a reference price. */
export const isPayable = ({ currency }) => currency === null;

/** True for a sample price: its specification says that its values are invented. */
export const isSample = ({ specification }) =>
  specification.some(({ name }) => name === 'sample data');

/** The text on VAT of the numbers of a price; else that of its specification, or undefined. */
export const vatOf = ({ conversion, specification }) =>
  conversion?.vat === 'excluded'
    ? 'excluded'
    : specification.find(({ name }) => name.toLowerCase() === 'vat')?.value;

/** A warning with the control of the page in place of the option of a request. */
export const remarkOf = ({ detail }) =>
  detail.replace('Set options.rates to period-mean', 'Choose “Rates of means: Mean of the period”');

/** Name of the source of sample exchange rates in a conversion receipt. */
const SAMPLE_RATES = 'SAMPLE';

/** True for a price that was converted by sample exchange rates. */
export const hasSampleRates = ({ conversion }) => conversion?.source === SAMPLE_RATES;

/** The location of a price: its country and region, if it has them. */
export const placeText = ({ country, region }) =>
  [country?.name, region?.name].filter(Boolean).join(', ');

/** Placeholder of a missing value. */
export const NOTHING = '–';
