import { crc32 } from 'node:zlib';
import type { MarketSlug } from '../../catalog/markets.ts';
import type { Newest } from '../../db/newest.ts';
import type { Plan } from '../../prices/plan/plan.ts';
import { isSameState, isShownBy, type State, type StatePlan } from '../../prices/state.ts';
import type { Coding, WantedCoding } from '../../std/negotiation.ts';
import { type Budget, OVERHEAD_BYTES, Remembered } from '../store/budget.ts';

/** Bytes of an answer that is held as a whole while it is written. */
export const HELD_BYTES = 16_777_216;

/** The part of the budget that one answer may take. */
const ANSWER_SHARE = 1 / 32;

/** Bytes of the objects around the bytes of an answer: its headers, its state, and its key. */
const OBJECT_BYTES = 2_048;

/** Which slices are copied, those together that follow one another, and how many bytes together. */
interface Joining {
  readonly below: number;
  readonly upTo: number;
}

/** Each slice costs a write about as much as copying so many bytes. */
const SMALL: Joining = { below: 8_192, upTo: 65_536 };

/** All of an answer, in few slices: hundreds cost about as much as half of sending their bytes. */
const ALL: Joining = { below: Number.POSITIVE_INFINITY, upTo: 1_048_576 };

/** Copies small slices; big ones stay as they are. */
export function joinedSlices(
  slices: readonly Buffer[],
  { below, upTo }: Joining = SMALL,
): readonly Buffer[] {
  const joined: Buffer[] = [];
  let small: Buffer[] = [];
  let bytes = 0;
  const flush = (): void => {
    if (small.length === 0) return;
    // Exactly as long as it is: what is cached must not pin a bigger buffer.
    const whole = Buffer.allocUnsafeSlow(bytes);
    let at = 0;
    for (const slice of small) at += slice.copy(whole, at);
    joined.push(whole);
    small = [];
    bytes = 0;
  };
  for (const slice of slices) {
    const isSmall = slice.length < below;
    if (!isSmall || bytes >= upTo) flush();
    if (isSmall) {
      small.push(slice);
      bytes += slice.length;
    } else joined.push(slice);
  }
  flush();
  return joined;
}

/** How an answer was sent, beside its bytes. */
export interface Sent {
  readonly plan: Plan;
  readonly state: State;
  /** The tag of the answer; null where nobody may keep it. */
  readonly tag: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly wanted: WantedCoding;
  /** The coding that its bytes have. */
  readonly coding: Coding | null;
}

/** The state that a plan reads at a look. */
export type StateAt = (plan: StatePlan, newest: Newest) => Promise<State>;

/** An answer as it was sent, for those who ask the same at the same state. */
export class SentAnswer extends Remembered {
  readonly sent: Omit<Sent, 'plan'>;
  readonly slices: readonly Buffer[];
  /** Bytes of the answer. */
  readonly length: number;
  readonly bytes: number;
  /** The markets that its warnings may name; null where they name none, whoever asks. */
  readonly #openMarkets: readonly MarketSlug[] | null;
  /** Its codes may take more than the answer itself. */
  readonly #plan: StatePlan;
  /** The newest revision at which it was the answer. */
  #newest: Newest;
  readonly forget: () => void;

  constructor({ plan, ...sent }: Sent, at: Newest, slices: readonly Buffer[], forget: () => void) {
    super();
    const { market, options, page, codes, openMarkets } = plan;
    this.#plan = { market, options, page };
    this.#openMarkets = codes && openMarkets;
    this.#newest = at;
    this.sent = sent;
    this.slices = slices;
    this.forget = forget;
    this.length = slices.reduce((sum, { length }) => sum + length, 0);
    const headers = JSON.stringify(sent.headers).length;
    this.bytes = this.length + 2 * headers + OBJECT_BYTES + OVERHEAD_BYTES;
  }

  /** Whether somebody may have it who may read these markets: its warnings name some. */
  isOpenTo(markets: () => readonly MarketSlug[]): boolean {
    return this.#openMarkets === null || this.#openMarkets.join() === markets().join();
  }

  /** Whether it is the answer at the newest revision as well. */
  async isCurrent(newest: Newest, stateOf: StateAt): Promise<boolean> {
    if (this.#newest.order >= newest.order) return true;
    if (!isShownBy(newest, this.#plan)) return false;
    if (!isSameState(this.sent.state, await stateOf(this.#plan, newest))) return false;
    this.#newest = newest;
    return true;
  }
}

/** Requests of a market that are noted as made once: to cache all would cost more than it saves. */
const NOTED = 1_000;

/** The answers of a market that were asked for more than once, by the text of the request. */
export class SentAnswers {
  readonly #budget: Budget;
  readonly #sent = new Map<string, SentAnswer>();
  /** Checksums of requests that were made once. */
  readonly #once = new Set<number>();

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  get(request: string): SentAnswer | undefined {
    return this.#sent.get(request);
  }

  /** Whether the same request was made before, not too long ago; notes that it was made now. */
  isRepeated(request: string): boolean {
    const sum = crc32(request);
    if (this.#once.delete(sum)) return true;
    this.#once.add(sum);
    if (this.#once.size > NOTED) this.#once.delete(this.#once.values().next().value as number);
    return false;
  }

  /** Most bytes of an answer that is cached. */
  get bytesMax(): number {
    return Math.min(HELD_BYTES, ANSWER_SHARE * this.#budget.state.limit);
  }

  /** Caches the answer to a request, in the place of an older one. */
  keep(request: string, sent: Sent, at: Newest, parts: readonly Buffer[]): void {
    const older = this.#sent.get(request);
    if (older) this.#budget.remove(older);
    const forget = (): void => {
      if (this.#sent.get(request) === answer) this.#sent.delete(request);
    };
    const answer = new SentAnswer(sent, at, joinedSlices(parts, ALL), forget);
    if (this.#budget.add(answer)) this.#sent.set(request, answer);
    else this.#sent.delete(request);
  }
}
