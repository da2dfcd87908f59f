/** General rates of value added tax in percent, by the country and the first day of each rate. */
export const VAT_RATES: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  CN: { '1994-01-01': 17, '2018-05-01': 16, '2019-04-01': 13 },
};
