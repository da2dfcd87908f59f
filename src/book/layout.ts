import { crc32 } from 'node:zlib';
import type { Metadata } from '../prices/answer.ts';
import { canonicalKey, type Plan } from '../prices/plan.ts';
import { type Budget, OVERHEAD_BYTES, Remembered } from './budget.ts';
import type { LineFormat } from './frames.ts';
import type { Source } from './records.ts';

/** Slices below this are copied: each of them costs a write about as much as copying so much. */
const SMALL_BYTES = 8_192;

/** Which slices are copied, those together that follow one another, and how many bytes together. */
interface Joining {
  readonly below: number;
  readonly upTo: number;
}

/** What a long answer copies: no more than what would cost as much as slices of their own. */
const SMALL: Joining = { below: SMALL_BYTES, upTo: 65_536 };

/** All of an answer, in few slices: hundreds cost about as much as half of sending their bytes. */
const ALL: Joining = { below: Number.POSITIVE_INFINITY, upTo: 1_048_576 };

/** Bytes of an answer that is held as a whole while it is written. */
export const HELD_BYTES = 16_777_216;

/** The part of the budget that the copy of one answer may take. */
const COPY_SHARE = 1 / 32;

/** Bytes that a warning takes as an object, more or less. */
const WARNING_BYTES = 1_024;

/** Bytes of a buffer beside what it shows. */
const SLICE_BYTES = 128;

/** Bytes in small slices: a layout copies them, and so counts what nobody else remembers. */
export function inSmall(bytes: Buffer): Buffer[] {
  if (bytes.length < SMALL_BYTES) return [bytes];
  const slices: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += SMALL_BYTES - 1) {
    slices.push(bytes.subarray(at, at + SMALL_BYTES - 1));
  }
  return slices;
}

/** Copies small slices; big ones stay as they are. */
export function joinedSlices(
  slices: readonly Buffer[],
  { below, upTo }: Joining = SMALL,
): { readonly slices: Buffer[]; readonly own: number } {
  const joined: Buffer[] = [];
  let own = 0;
  let small: Buffer[] = [];
  let bytes = 0;
  const flush = (): void => {
    if (small.length === 0) return;
    // Exactly as long as it is: what is remembered must not pin a bigger buffer.
    const whole = Buffer.allocUnsafeSlow(bytes);
    let at = 0;
    for (const slice of small) at += slice.copy(whole, at);
    joined.push(whole);
    own += bytes;
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
  return { slices: joined, own };
}

/** Slices but for their first bytes. */
function* after(bytes: number, slices: Iterable<Buffer>) {
  let left = bytes;
  for (const slice of slices) {
    if (left < slice.length) yield slice.subarray(left);
    left = Math.max(0, left - slice.length);
  }
}

const bytesOf = (slices: readonly Buffer[]): number =>
  slices.reduce((sum, { length }) => sum + length, 0);

/**
 * How an answer is put together, for those who ask the same at the same state: a copy of it, or, of
 * a long one, slices of fragments and heads, the small ones joined. These go before anything they
 * are made of does.
 */
export class Layout extends Remembered {
  override readonly holdsOthers: boolean;
  /** Null once it is forgotten. */
  slices: readonly Buffer[] | null;
  /** Bytes of the answer. */
  readonly length: number;
  /** What the answer says of itself. */
  readonly metadata: Metadata;
  readonly bytes: number;
  readonly #key: LayoutKey;

  /** @param limit bytes of the whole budget */
  constructor(key: LayoutKey, metadata: Metadata, parts: readonly Buffer[], limit: number) {
    super();
    this.length = bytesOf(parts);
    this.holdsOthers = this.length > Math.min(HELD_BYTES, COPY_SHARE * limit);
    const { slices, own } = joinedSlices(parts, this.holdsOthers ? SMALL : ALL);
    this.slices = slices;
    this.metadata = metadata;
    // Each warning has some texts; its bytes are in the slices already.
    const told = WARNING_BYTES * (1 + metadata.warnings.length);
    this.bytes = own + told + SLICE_BYTES * slices.length + 2 * key.text.length + OVERHEAD_BYTES;
    this.#key = key;
  }

  /**
   * Its slices for as long as it is remembered, and then those that are made again: a reader
   * however slow must not hold what the budget has given up.
   */
  *slicesOr(again: () => Iterable<Buffer>): Generator<Buffer> {
    let bytes = 0;
    for (let index = 0; this.slices !== null; index += 1) {
      const slice = this.slices[index];
      if (slice === undefined) return;
      bytes += slice.length;
      yield slice;
    }
    yield* after(bytes, again());
  }

  forget(): void {
    this.slices = null;
    this.#key.of.delete(this.#key.text);
  }
}

/** Where the layout of an answer is kept. */
interface LayoutKey {
  readonly of: Map<string, Layout>;
  /** Checksums of what was asked once. */
  readonly asked: Set<number>;
  readonly text: string;
}

/** What was asked once is noted of so many; to remember all of it would cost more than it saves. */
const ASKED = 1_000;

/** Whether the same was asked before, not too long ago; notes that it was asked now. */
export function isAskedAgain({ asked, text }: LayoutKey): boolean {
  const sum = crc32(text);
  if (asked.delete(sum)) return true;
  asked.add(sum);
  if (asked.size > ASKED) asked.delete(asked.values().next().value as number);
  return false;
}

/** The answers of one form at one state. */
interface Form extends Omit<LayoutKey, 'text'> {
  readonly state: string;
}

/** Layouts of an edition by what was asked, for each form of answers: those of its last state. */
export type Layouts = Map<string, Form>;

/** Forgets layouts, all of them. */
export function forgetLayouts(layouts: Layouts, budget: Budget): void {
  for (const form of layouts.keys()) forgetForm(layouts, form, budget);
}

/** Layouts of one form: to forget them all, as a commit does, must not hold the event loop. */
const LAYOUTS = 1_000;

/** Remembers a layout; of too many the first goes. */
export function rememberLayout({ of, text }: LayoutKey, layout: Layout, budget: Budget): void {
  of.set(text, layout);
  const [oldest] = of.values();
  if (of.size <= LAYOUTS || oldest === undefined) return;
  budget.remove(oldest);
  oldest.forget();
}

function forgetForm(layouts: Layouts, form: string, budget: Budget): void {
  for (const layout of layouts.get(form)?.of.values() ?? []) {
    budget.remove(layout);
    layout.forget();
  }
  layouts.delete(form);
}

/**
 * Where the layout of an answer is: the same key stands for the same bytes.
 * @param revision the state of the answer, as on the wire
 */
export function layoutKey(
  { edition, rates, budget }: Source,
  plan: Plan,
  revision: string,
  format: LineFormat,
  coding: 'gzip' | null,
): LayoutKey {
  const { layouts } = edition;
  const form = `${format} ${coding} ${rates === null}`;
  const state = `${revision} ${rates?.slug}.${rates?.revision}`;
  let known = layouts.get(form);
  if (known?.state !== state) {
    forgetForm(layouts, form, budget);
    known = { state, of: new Map(), asked: new Set() };
    layouts.set(form, known);
  }
  const { of, asked } = known;
  return { of, asked, text: canonicalKey(plan) };
}
