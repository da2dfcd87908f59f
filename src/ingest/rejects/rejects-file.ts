import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { access, link, open, rename, rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { ATTRIBUTES, POINT_FIELDS, REJECT_FIELDS } from '../attributes.ts';
import type { LoadProblem, RejectSink, RowValues } from './problems.ts';

const BUFFER_CHARACTERS = 65_536;

/** What says where and why a row was rejected, in the columns of a CSV file of ours. */
type Reason = Readonly<
  Record<Exclude<(typeof REJECT_FIELDS)[number], 'rejectText'>, string | null>
>;

const field = (value: string | null | undefined): string => {
  const text = value ?? '';
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

const csvLine = (values: readonly (string | null | undefined)[]): string =>
  `${values.map(field).join(',')}\n`;

/** The columns of the rows: why they were rejected, then those of our CSV, then any others. */
function columnsOf(names: ReadonlySet<string>): string[] {
  const known: readonly string[] = [...POINT_FIELDS, ...ATTRIBUTES];
  const own = known.filter((name) => names.has(name));
  return [...new Set([...REJECT_FIELDS, ...own, ...names])];
}

/** Writes text in parts of some size. */
class Writer {
  private text = '';
  readonly descriptor: number;

  constructor(path: string) {
    this.descriptor = openSync(path, 'wx');
  }

  write(text: string): void {
    this.text += text;
    if (this.text.length > BUFFER_CHARACTERS) this.flush();
  }

  private flush(): void {
    for (let bytes = Buffer.from(this.text); bytes.length > 0; ) {
      bytes = bytes.subarray(writeSync(this.descriptor, bytes));
    }
    this.text = '';
  }

  /** Writes what is left, to the disk itself. */
  close(): void {
    this.flush();
    fsyncSync(this.descriptor);
    closeSync(this.descriptor);
  }
}

/** A name for the file of rejected rows that is taken. */
class RejectsTakenError extends Error {
  override readonly name = 'RejectsTakenError';
  readonly exitCode = 2;
}

/**
 * The file of rejected rows: written beside its place while the load goes on, and put there whole,
 * just before the load is committed. A load that fails leaves no such file.
 */
export class RejectsFile implements RejectSink {
  rows = 0;
  readonly path: string;
  private readonly loaded: string;
  private readonly overwrites: boolean;
  private readonly noted: string;
  private readonly written: string;
  private readonly notes: Writer;
  private readonly names = new Set<string>();
  private isOpen = true;
  /** Whether it lies in its place. */
  isPlaced = false;

  private constructor(path: string, loaded: string, overwrites: boolean) {
    this.path = path;
    this.loaded = loaded;
    this.overwrites = overwrites;
    const own = `${path}.${randomBytes(6).toString('hex')}`;
    this.noted = `${own}.notes`;
    this.written = `${own}.partial`;
    this.notes = new Writer(this.noted);
  }

  /**
   * Begins a file of rejected rows.
   * @param loaded the file whose rows they are
   * @throws when there is a file already that may not be overwritten, or none can be written
   */
  static async begin(path: string, loaded: string, overwrites: boolean): Promise<RejectsFile> {
    if (!overwrites) {
      const isThere = await access(path).then(
        () => true,
        () => false,
      );
      if (isThere)
        throw new RejectsTakenError(
          `${path} is there already: name another file for the rejects, or take --overwrite`,
        );
    }
    return new RejectsFile(path, loaded, overwrites);
  }

  add(problem: LoadProblem, row: RowValues): void {
    const { line, column, value, code, message } = problem;
    const reason: Reason = {
      rejectFile: this.loaded,
      rejectLine: line === null ? null : String(line),
      rejectColumn: column,
      rejectValue: value,
      rejectCode: code,
      rejectReason: message,
    };
    for (const name of Object.keys(row)) this.names.add(name);
    this.notes.write(`${JSON.stringify({ ...reason, ...row })}\n`);
    this.rows += 1;
  }

  /** Puts the file in its place, whole; without a rejected row there is none. */
  async place(): Promise<void> {
    this.endNotes();
    if (this.rows === 0) return;
    const columns = columnsOf(this.names);
    const writer = new Writer(this.written);
    writer.write(csvLine(columns));
    const notes = await open(this.noted, 'r');
    try {
      for await (const line of createInterface({ input: notes.createReadStream() })) {
        const row = JSON.parse(line) as RowValues;
        writer.write(csvLine(columns.map((name) => row[name])));
      }
    } finally {
      writer.close();
    }
    // A link is refused when the name was taken meanwhile; a rename takes it.
    if (this.overwrites) await rename(this.written, this.path);
    else await link(this.written, this.path);
    this.isPlaced = true;
  }

  /** Clears up; with `failed` the load did not happen, and there are no rejects of it. */
  async end({ failed }: { readonly failed: boolean }): Promise<void> {
    this.endNotes();
    await rm(this.noted, { force: true });
    await rm(this.written, { force: true });
    if (failed && this.isPlaced) await rm(this.path, { force: true });
  }

  private endNotes(): void {
    if (this.isOpen) this.notes.close();
    this.isOpen = false;
  }
}
