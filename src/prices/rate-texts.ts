import type { FxColumns } from '../conversion/columns.ts';
import type { CurrencyRates } from '../conversion/rate-table.ts';
import { ByteWriter } from './bytes.ts';

/** Days whose texts are kept of one pair: eleven years of them. */
const DAYS = 4_096;

/** Pairs whose texts are kept. */
const PAIRS = 8;

/** Bytes of a text at most. */
const TEXT_BYTES = 160;

type Leg = CurrencyRates | null;

const out = new ByteWriter('null');

/** The rates of a pair as JSON, by day: the same days recur in each price that is converted. */
export class RateTexts {
  readonly from: Leg;
  readonly to: Leg;
  readonly #days = new Int32Array(DAYS);
  readonly #texts: (Buffer | undefined)[] = new Array(DAYS).fill(undefined);

  constructor(from: Leg, to: Leg) {
    this.from = from;
    this.to = to;
  }

  /** `,"fx":{…}` of a point that has a rate. */
  at(fx: FxColumns, index: number): Buffer {
    const day = fx.day[index] as number;
    const slot = day & (DAYS - 1);
    const known = this.#texts[slot];
    if (known && this.#days[slot] === day) return known;
    const text = written(fx, index);
    this.#days[slot] = day;
    this.#texts[slot] = text;
    return text;
  }
}

function written(fx: FxColumns, index: number): Buffer {
  out.begin(TEXT_BYTES);
  out.text(',"fx":{"date":"');
  out.day(fx.day[index] as number);
  out.text(`","base":"${fx.pair.base}","from":"`);
  out.number(fx.from, index, TEXT_BYTES);
  out.text('","to":"');
  out.number(fx.to, index, TEXT_BYTES);
  out.text('"}');
  return Buffer.from(out.end());
}

/** Those that were used last, the very last first. */
const recent: RateTexts[] = [];

/** The texts of a pair: those that are kept, or new ones. */
export function rateTextsOf({ pair: { from, to } }: FxColumns): RateTexts {
  const at = recent.findIndex((each) => each.from === from && each.to === to);
  const [texts = new RateTexts(from, to)] = at < 0 ? [] : recent.splice(at, 1);
  recent.unshift(texts);
  recent.length = Math.min(recent.length, PAIRS);
  return texts;
}
