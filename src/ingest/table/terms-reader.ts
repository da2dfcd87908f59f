import { ownCopy } from '../own-copy.ts';
import { Fault, type TableRow, textOf } from './fields.ts';
import type { Columns } from './layout.ts';
import type { Published, StatedTerm } from './schema.ts';
import { factorOf, type Terms, termsOf, termsProblem } from './terms.ts';

/** A currency or unit: a constant, or a column with what its texts stand for. */
class Stated {
  readonly at: number;
  private readonly constant: string | null;
  private readonly translate: ReadonlyMap<string, string> | null;

  constructor(term: StatedTerm | undefined, columns: Columns) {
    const isColumn = typeof term === 'object';
    this.constant = isColumn ? null : (term ?? null);
    this.at = isColumn ? columns.indexOf(term.column) : -1;
    this.translate = isColumn && term.translate ? new Map(Object.entries(term.translate)) : null;
  }

  read({ fields }: TableRow): string | null | Fault {
    if (this.at < 0) return this.constant;
    const text = textOf(fields[this.at], 'unit_mismatch');
    if (text instanceof Fault) return text;
    const meant = this.translate ? this.translate.get(text) : text;
    return meant || new Fault('unit_mismatch', 'The mapping does not say what this stands for');
  }
}

/** What is wrong with the terms of a row, and in which column. */
interface TermsFault {
  readonly fault: Fault;
  readonly column: string;
}

/** Different terms of one file that are remembered. */
const KINDS_MAX = 1_000;

/** Finds the terms of each row; rows with the same ones share one object. */
export class TermsReader {
  private readonly columns: Columns;
  private readonly currency: Stated;
  private readonly unit: Stated;
  private readonly factor: ReturnType<typeof factorOf>;
  private readonly known = new Map<string, Terms>();
  private lastRow: TableRow | null = null;
  private last: Terms | TermsFault | null = null;

  constructor(published: Published, columns: Columns) {
    this.columns = columns;
    this.currency = new Stated(published.currency, columns);
    this.unit = new Stated(published.unit, columns);
    this.factor = published.factor === undefined ? null : factorOf(String(published.factor));
  }

  /** The terms of a row; all points of a row share them. */
  read(row: TableRow): Terms | TermsFault {
    if (row !== this.lastRow || this.last === null) {
      this.lastRow = row;
      this.last = this.find(row);
    }
    return this.last;
  }

  private find(row: TableRow): Terms | TermsFault {
    const currency = this.currency.read(row);
    if (currency instanceof Fault) return this.faultAt(row, this.currency, currency);
    const unit = this.unit.read(row);
    if (unit instanceof Fault) return this.faultAt(row, this.unit, unit);
    const key = `${currency ?? ''}\n${unit ?? ''}`;
    const known = this.known.get(key);
    if (known) return known;
    const problem = termsProblem(currency, unit);
    if (problem !== null) {
      return this.faultAt(row, this.currency, new Fault('unknown_currency', problem));
    }
    const terms = termsOf(currency, unit, this.factor);
    // Texts of a file that stand for nothing are no reason to keep them all.
    if (this.known.size < KINDS_MAX) this.known.set(ownCopy(key), terms);
    return terms;
  }

  private faultAt(row: TableRow, { at }: Stated, fault: Fault): TermsFault {
    return { fault, column: at < 0 ? 'published' : this.columns.naming(at, row.line) };
  }
}
