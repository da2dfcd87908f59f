/** A value that a batch wrote for a price or point; null for a withdrawal. */
interface WrittenValue {
  readonly id: number;
  readonly value: string | null;
}

/** The change of one price or point by a batch: it pushed an entry, or popped it. */
interface Move {
  readonly key: string;
  readonly entry: WrittenValue;
  /** The entry below. */
  readonly below: WrittenValue | undefined;
}

interface ModelBatch {
  readonly does: 'put' | 'take';
  readonly moves: readonly Move[];
  readonly undoes: ModelBatch | null;
  undoneBy: ModelBatch | null;
}

/**
 * A model of the ledger: each price and each point is a stack of entries. An undo pops the entries
 * of its batch if they are on top. The undo of an undo pushes them again if the entries below are
 * on top.
 */
export class Ledger {
  private readonly piles = new Map<string, WrittenValue[]>();
  private readonly batches: ModelBatch[] = [];
  private written = 0;

  /** True if a price has a value on a day. */
  has(code: string, date: string): boolean {
    return this.top(this.pointKey(code, date))?.value != null;
  }

  /** Loads a description and values. @returns whether that changed anything */
  load(code: string, name: string, values: readonly (readonly [string, string])[]): boolean {
    const moves: Move[] = [];
    if (this.top(code)?.value !== name) moves.push(this.put(code, name));
    for (const [date, mid] of values) {
      const key = this.pointKey(code, date);
      if (this.top(key)?.value !== mid) moves.push(this.put(key, mid));
    }
    this.batches.push({ does: 'put', moves, undoes: null, undoneBy: null });
    return moves.length > 0;
  }

  withdraw(code: string, dates: readonly string[]): void {
    const moves = dates.map((date) => this.put(this.pointKey(code, date), null));
    this.batches.push({ does: 'put', moves, undoes: null, undoneBy: null });
  }

  /** Undoes a batch. @returns whether that is possible */
  undo(index: number): boolean {
    const batch = this.batches[index] as ModelBatch;
    if (batch.undoneBy !== null || !this.canUndo(batch)) return false;
    // Another undo of an earlier batch of the chain comes first.
    for (let each = batch; each.undoes; each = each.undoes) {
      const { undoneBy } = each.undoes;
      if (undoneBy !== null && undoneBy !== each) return false;
    }
    for (const { key, entry } of batch.moves) {
      if (batch.does === 'put') this.pile(key).pop();
      else this.pile(key).push(entry);
    }
    const does = batch.does === 'put' ? 'take' : 'put';
    let by: ModelBatch = { does, moves: batch.moves, undoes: batch, undoneBy: null };
    this.batches.push(by);
    for (let each: ModelBatch | null = batch; each; each = each.undoes) {
      each.undoneBy = each.undoneBy === null ? by : null;
      by = each;
    }
    return true;
  }

  /** The current data, one line for each price and value. */
  state(): string[] {
    const lines: string[] = [];
    for (const [key, pile] of this.piles) {
      const value = pile.at(-1)?.value;
      const [code = '', id, date] = key.split(' ');
      if (value == null || (id !== undefined && id !== this.idOf(code))) continue;
      lines.push(date === undefined ? `${code} ${value}` : `${code} ${date} ${value}`);
    }
    return lines.sort();
  }

  private canUndo({ does, moves }: ModelBatch): boolean {
    const keys = new Set(moves.map(({ key }) => key));
    return moves.every(({ key, entry, below }) => {
      const [code = '', id] = key.split(' ');
      if (does === 'put') {
        const isLast = this.top(key) === entry;
        const isPriceThatGoes = id === undefined && below === undefined;
        return isLast && (!isPriceThatGoes || this.hasNoPointsBut(code, keys));
      }
      if (this.top(key) !== below) return false;
      // A point needs its original price, unless the price is restored as well.
      if (id === undefined || keys.has(code)) return true;
      return this.idOf(code) === id;
    });
  }

  private hasNoPointsBut(code: string, keys: ReadonlySet<string>): boolean {
    const start = `${code} ${this.idOf(code)} `;
    return [...this.piles].every(
      ([key, pile]) => !key.startsWith(start) || pile.length <= (keys.has(key) ? 1 : 0),
    );
  }

  /** The id of the price that a code means; a new price has points of its own. */
  private idOf(code: string): string {
    return String(this.piles.get(code)?.[0]?.id);
  }

  private pointKey(code: string, date: string): string {
    return `${code} ${this.idOf(code)} ${date}`;
  }

  private pile(key: string): WrittenValue[] {
    const pile = this.piles.get(key) ?? [];
    this.piles.set(key, pile);
    return pile;
  }

  private top(key: string): WrittenValue | undefined {
    return this.piles.get(key)?.at(-1);
  }

  private put(key: string, value: string | null): Move {
    const below = this.top(key);
    this.written += 1;
    const entry = { id: this.written, value };
    this.pile(key).push(entry);
    return { key, entry, below };
  }
}
