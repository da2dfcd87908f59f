import { ONE, parseUnit, type UnitProduct } from '../../calculation/unit.ts';
import { codeKey } from '../../catalog/match-key.ts';
import type { Columns } from '../../conversion/columns.ts';
import { type Outcome, outcomeOf } from '../../conversion/outcome.ts';
import { pairOf, type RateTable } from '../../conversion/rate-table.ts';
import { unitNamed } from '../../conversion/units.ts';
import { brokenRules, quoted, type Violation } from '../../errors.ts';
import { dayOf } from '../../std/days.ts';
import type { Readers } from '../answer/answer.ts';
import {
  currencyNamed,
  meanWarnings,
  type RatesOfPrice,
  ratesByPrice,
  thereAre,
  unknownCurrency,
  vatMeanWarnings,
  vatRatesOf,
  vatWarnings,
} from '../answer/conversions.ts';
import { sampleRates, type Warning } from '../answer/warnings.ts';
import type { SelectedPrice } from '../market/query.ts';
import type { References } from '../market/references.ts';
import { NO_POINTS } from '../series/collector.ts';
import type { SeriesRange } from '../series/ranges.ts';
import { basisInputs } from './basis.ts';
import type { CalculationData, OpenMarket } from './data.ts';
import type { InputResult } from './input-result.ts';
import type {
  CalculationInput,
  CalculationPlan,
  NumberInput,
  PriceInput,
  RateInput,
} from './plan.ts';
import { type PreparedPrice, PriceSessions, priceRange } from './price-input.ts';
import { RateDays } from './rate-input.ts';
import { unitOf } from './units.ts';

/** The violations of inputs against the data, collected and thrown together. */
type Broken = Violation[];

/** An input whose unit is known, and that can be computed for each anchor. */
export interface ReadyInput {
  readonly name: string;
  readonly pointer: string;
  readonly unit: UnitProduct;
  /** Number of sessions of an anchor. */
  readonly countAt: (anchor: number | null) => number;
  readonly at: (anchor: number | null) => InputResult;
}

/** A price input and the market that has it. */
interface FoundPrice {
  readonly input: PriceInput;
  readonly price: SelectedPrice;
  readonly open: OpenMarket;
  readonly outcome: Outcome;
  readonly prepared: PreparedPrice;
}

/** The inputs of a calculation, in the order of the request, before any point is read. */
interface PreparedInputs {
  readonly units: ReadonlyMap<string, UnitProduct>;
  readonly warnings: readonly Warning[];
  /** Reads the points. */
  readonly read: () => Promise<readonly ReadyInput[]>;
}

/**
 * Finds the prices, units and conversions of all inputs.
 * @throws Problem `validation_failed` with the violations of all inputs
 */
export async function preparedInputs(
  readers: Readers,
  plan: CalculationPlan,
  data: CalculationData,
): Promise<PreparedInputs> {
  const { references, markets } = data;
  const { table, ratesOf } = await ratesIn(readers, data);
  const inputs = allInputs(plan, data);
  const broken: Broken = [];
  const prices = new Map<string, FoundPrice>();
  const others = new Map<string, ReadyInput>();
  for (const input of inputs) {
    const { name, kind } = input;
    if (kind === 'price') {
      prices.set(name, foundPrice(input, markets, references, ratesOf, broken));
      continue;
    }
    const made =
      kind === 'number'
        ? numberReady(input, references, broken)
        : rateReady(input, references, table, broken);
    if (made !== null) others.set(name, made);
  }
  if (broken.length > 0) throw brokenRules(broken);
  const unitIn = (name: string) => prices.get(name)?.prepared.unit ?? others.get(name)?.unit ?? ONE;
  const asOfDay = dayOf(data.data.committedAt.slice(0, 10));
  return {
    units: new Map(inputs.map(({ name }) => [name, unitIn(name)])),
    warnings: await warningsOf([...prices.values()], plan, data),
    read: async () => {
      const columns = await readColumns([...prices.values()], plan.anchors);
      return inputs.flatMap(({ name }) => {
        const price = prices.get(name);
        if (price === undefined) return others.get(name) ?? [];
        return priceReady(price, columns.get(price) ?? NO_POINTS, asOfDay);
      });
    },
  };
}

/** The inputs of a plan, with those that `convertBasis` adds. */
function allInputs(
  plan: CalculationPlan,
  { markets, references }: CalculationData,
): readonly CalculationInput[] {
  const { basis, inputs } = plan;
  const [first] = inputs;
  if (basis === null || first?.kind !== 'price') return inputs;
  return [...inputs, ...basisInputs(basis, openOf(first, markets).price, references)];
}

/** The rates that may convert each price, and those of rate inputs. */
async function ratesIn(readers: Readers, { data, source, markets }: CalculationData) {
  const table = source && (await readers.rates(readers.db, data.epoch, source));
  const samples = async (): Promise<ReadonlySet<number>> => {
    const all = await Promise.all(
      markets.map(({ market, data: at }) => readers.samples(market, at)),
    );
    return new Set(all.flatMap((ids) => [...ids]));
  };
  return { table, ratesOf: await ratesByPrice(table, samples) };
}

function numberReady(input: NumberInput, references: References, broken: Broken): ReadyInput {
  const { name, pointer, value, note } = input;
  const text = input.unit ?? '1';
  const unit = unitOf(text, `${pointer}/unit`, references, broken);
  const result = { name, value, unit, observations: null, reasons: [], receipt: () => ({ note }) };
  return { name, pointer, unit, countAt: () => 0, at: () => result };
}

function rateReady(
  input: RateInput,
  references: References,
  rates: RateTable | null,
  broken: Broken,
): ReadyInput | null {
  const { name, pointer } = input;
  const [quote, base] = [input.quote, input.base].map((iso) => {
    const found = currencyNamed(references, iso.trim());
    if (found === undefined) broken.push(unknownCurrency(references, `${pointer}/rate`, iso));
    return found;
  });
  if (quote === undefined || base === undefined) return null;
  const pair = rates && pairOf(rates, base.id, quote.id);
  if (pair === null || quote.id === base.id) {
    const detail = `The source of exchange rates has no rate of ${quoted(input.rate)}`;
    broken.push({ pointer: `${pointer}/rate`, code: 'unconvertible', detail });
    return null;
  }
  const unit = parseUnit(`${quote.member.iso}/${base.member.iso}`, (each) => ({
    name: each,
    isCurrency: true,
  }));
  const days = new RateDays({ input, unit, pair });
  return {
    ...{ name, pointer, unit },
    countAt: (anchor) => days.countAt(anchor),
    at: (anchor) => days.at(anchor),
  };
}

/** The price that an input names. @throws Error without it: unknown codes are rejected before */
function openOf(input: PriceInput, markets: readonly OpenMarket[]) {
  for (const open of markets) {
    const price = open.prices.get(codeKey(input.code));
    if (price !== undefined) return { open, price };
  }
  throw new Error(`no market has ${input.code}`);
}

/** The requested currency and unit of an input; null keeps that of the price. */
function targetOf(input: PriceInput, references: References, broken: Broken) {
  const { pointer, currency: iso, unitOfMeasure } = input;
  const currency = iso === null ? null : currencyNamed(references, iso);
  if (currency === undefined && iso !== null) {
    broken.push(unknownCurrency(references, `${pointer}/currency`, iso));
  }
  const units = [...references.units.values()].map((each) => each.unit);
  const unit = unitOfMeasure === null ? null : unitNamed(units, unitOfMeasure);
  if (unit === undefined && unitOfMeasure !== null) {
    const known = units.map(({ name, symbol }) => `${name} (${symbol})`);
    const detail = `There is no unit "${quoted(unitOfMeasure)}"${thereAre(known)}`;
    broken.push({ pointer: `${pointer}/unitOfMeasure`, code: 'unknown_unit', detail });
  }
  return { currency: currency ?? null, unit: unit ?? null };
}

const UNCONVERTIBLE: Readonly<Record<string, string>> = {
  payable: 'A payable is a percentage, which has no currency and unit; omit currency and unit',
  'incompatible-unit': 'The unit of this price is of another kind; omit unitOfMeasure',
  'no-rate': 'The source of exchange rates has no rate for this price; omit currency',
  'no-vat-rate': 'The country of this price has no rate of VAT; omit vat, or load its rates',
};

function foundPrice(
  input: PriceInput,
  markets: readonly OpenMarket[],
  references: References,
  ratesOf: RatesOfPrice,
  broken: Broken,
): FoundPrice {
  const { open, price } = openOf(input, markets);
  const target = targetOf(input, references, broken);
  const unit = references.units.get(price.unit_id)?.unit;
  if (unit === undefined) throw new Error(`no unit ${price.unit_id} at this revision`);
  const isPayable = price.price_type === 'payable';
  const vat = input.vat === 'exclude' ? vatRatesOf(price, references) : null;
  if (input.vat === 'exclude' && vat === null) {
    broken.push({
      pointer: `${input.pointer}/vat`,
      code: 'vat_not_included',
      detail: isPayable
        ? 'A payable is a percentage, which includes no VAT; omit vat'
        : `${price.code} is not known to include VAT (its vatCountry is null); omit vat`,
    });
  }
  const basis = { payable: isPayable, currency: price.currency_id, unit, vat };
  const wanted = { currency: target.currency?.id ?? null, unit: target.unit };
  const outcome = outcomeOf(basis, wanted, ratesOf(price));
  const isConverting = input.currency !== null || input.unitOfMeasure !== null || vat !== null;
  if (isConverting && outcome.reason !== null) {
    const detail = UNCONVERTIBLE[outcome.reason] ?? outcome.reason;
    broken.push({ pointer: input.codePointer, code: 'unconvertible', detail });
  }
  const currency = target.currency ?? references.currencies.get(price.currency_id ?? -1);
  const parts = [currency?.member.iso ?? '', (target.unit ?? unit).symbol];
  const product = isPayable
    ? ONE
    : parseUnit(parts.join('/'), (name) => ({ name, isCurrency: name === parts[0] }));
  const { conversion } = outcome;
  const source = conversion?.pair?.source ?? null;
  const calendar = references.calendars.of(price.id)?.calendar ?? null;
  const prepared = { input, price, isPayable, unit: product, conversion, calendar, source };
  return { input, price, open, outcome, prepared };
}

const rangeKey = ({ days, last }: SeriesRange): string => `${days.first} ${days.last} ${last}`;

/** Reads the points of price inputs: one read for each market and range of days. */
async function readColumns(
  found: readonly FoundPrice[],
  anchors: CalculationPlan['anchors'],
): Promise<ReadonlyMap<FoundPrice, Columns>> {
  const groups = Map.groupBy(found, ({ input, open }) => {
    return `${open.market.slug} ${rangeKey(priceRange(input, anchors))}`;
  });
  const columns = new Map<FoundPrice, Columns>();
  await Promise.all(
    [...groups.values()].map(async (group) => {
      const [first] = group;
      if (first === undefined) return;
      const ids = [...new Set(group.map(({ price }) => price.id))];
      const read = await first.open.reader.series(ids, priceRange(first.input, anchors));
      for (const each of group) columns.set(each, read.get(each.price.id) ?? NO_POINTS);
    }),
  );
  return columns;
}

function priceReady(found: FoundPrice, columns: Columns, asOfDay: number): ReadyInput {
  const { input, prepared } = found;
  const sessions = new PriceSessions(prepared, columns, asOfDay);
  return {
    ...{ name: input.name, pointer: input.pointer, unit: prepared.unit },
    countAt: (anchor) => sessions.countAt(anchor),
    at: (anchor) => sessions.at(anchor),
  };
}

/** A price input takes no mean rates: an input of its own is one. */
const MEAN_REMEDY = 'Omit currency and multiply by an exchange rate as an input';

/** The warnings about converted inputs. */
async function warningsOf(
  found: readonly FoundPrice[],
  plan: CalculationPlan,
  { source }: CalculationData,
): Promise<readonly Warning[]> {
  const rated = plan.inputs.find(({ kind }) => kind === 'rate');
  const converted = found.find(({ prepared }) => prepared.source !== null);
  const place = rated?.pointer ?? converted?.input.pointer;
  const vat = await Promise.all(
    found.map(async ({ input, price, outcome }) => {
      const planned = [{ price, outcome }];
      const warnings = [...meanWarnings(planned, MEAN_REMEDY), ...(await vatWarnings(planned))];
      const { days } = priceRange(input, plan.anchors);
      return [
        ...warnings.map((each) => ({ ...each, pointer: `${input.pointer}/currency` })),
        ...vatMeanWarnings(planned, days).map((each) => {
          return { ...each, pointer: `${input.pointer}/vat` };
        }),
      ];
    }),
  );
  const isSample = source?.isSample && place !== undefined;
  return [...(isSample ? [sampleRates(source.slug, place)] : []), ...vat.flat()];
}
