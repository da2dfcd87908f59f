import type { Client } from '../../db/client.ts';
import {
  readVatRates,
  type VatChange,
  type VatRatesByCountry,
  type VatRatesOf,
  vatChanges,
  writeVatRates,
} from '../../db/reference/vat-rates.ts';
import {
  loadReferenceFile,
  type ReferenceKind,
  type ReferenceReport,
  type ReferenceRequest,
  type ReportFault,
} from '../load/reference-file.ts';
import { pointerTo } from '../mapping/yaml.ts';
import { isDay } from '../parsing/dates.ts';

/*
 * Loads of rates of value added tax. A file states countries whole; those that it does not name
 * stay.
 */

export type VatRequest = ReferenceRequest<VatChange>;
export type VatReport = ReferenceReport<VatChange>;

/** The bounds of the column. */
const DAY_MIN = '1800-01-01';
const DAY_MAX = '2199-12-31';

/** Percent with at most four decimals; trailing zeros are not part of the number. */
const RATE = /^(?:0|[1-9]\d?|100)(?:\.\d{1,4}0*)?$/;

/** A rate as decimal text without trailing zeros; null if it is none. */
function rateOf(value: unknown): string | null {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || !RATE.test(text) || Number(text) > 100) return null;
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The rates of one country without faulty ones. */
function countryOf(value: unknown, pointer: string, report: ReportFault): VatRatesOf {
  const rates = new Map<string, string>();
  const fail = (message: string, at: string): void => report('invalid_vat', message, at);
  if (!isMap(value) || Object.keys(value).length === 0) {
    fail('Must be a mapping of the first day of each rate to the rate', pointer);
    return rates;
  }
  for (const [from, sent] of Object.entries(value)) {
    const at = pointerTo(pointer, from);
    const rate = rateOf(sent);
    if (!isDay(from) || from < DAY_MIN || from > DAY_MAX) {
      fail(`Must be a day from ${DAY_MIN} to ${DAY_MAX}, written YYYY-MM-DD`, at);
    } else if (rate === null) {
      fail('Must be a rate in percent, from 0 to 100, with at most 4 decimals, such as 13', at);
    } else rates.set(from, rate);
  }
  return rates;
}

/** The rates of a file without faulty ones. */
function fileOf(value: unknown, report: ReportFault): VatRatesByCountry {
  const countries = new Map<string, VatRatesOf>();
  if (!isMap(value)) {
    report('invalid_vat', 'Must be a mapping with the member "vat"', '');
    return countries;
  }
  for (const name of Object.keys(value).filter((each) => each !== 'vat')) {
    report('invalid_vat', 'There is no such member; it has vat', pointerTo('', name));
  }
  const { vat } = value;
  if (vat === undefined || vat === null) return countries;
  if (!isMap(vat)) {
    report('invalid_vat', 'Must be a mapping of countries to their rates', '/vat');
    return countries;
  }
  for (const [country, rates] of Object.entries(vat)) {
    const at = pointerTo('/vat', country);
    if (/^[A-Z]{2}$/.test(country)) countries.set(country, countryOf(rates, at, report));
    else report('invalid_vat', 'A country is its ISO 3166 code of two letters, such as CN', at);
  }
  return countries;
}

const VAT: ReferenceKind<VatRatesByCountry, VatChange> = {
  format: 'vat',
  file: { name: 'VAT file', bytesMax: 262_144 },
  emptyMessage: 'The file states no rates of VAT',
  read(value, report) {
    const file = fileOf(value, report);
    return file.size === 0 ? null : file;
  },
  async compare(trx, file) {
    const { changes, unchanged } = vatChanges(file, await readVatRates(trx, null));
    return { changes, unchanged, write: (trx, batch) => writeVatRates(trx, changes, batch) };
  },
};

/**
 * Loads a file with rates of VAT, see `loadReferenceFile`. The file states a country whole: its
 * other rates end. Countries that the file does not name stay.
 */
export const loadVat = (client: Client, request: VatRequest): Promise<VatReport> =>
  loadReferenceFile(client, VAT, request);
