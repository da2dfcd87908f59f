import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { access, link, rename, rm } from 'node:fs/promises';
import type { LoadProblem } from './load-error.ts';
import type { SourceFile } from './source-file.ts';

const BUFFER_BYTES = 65_536;
const LF = Buffer.from('\n');

/** Writes a new file in parts of some size. */
class FileWriter {
  private parts: Buffer[] = [];
  private bytes = 0;
  private readonly descriptor: number;

  constructor(path: string) {
    this.descriptor = openSync(path, 'wx');
  }

  write(part: Buffer): void {
    this.parts.push(part);
    this.bytes += part.length;
    if (this.bytes > BUFFER_BYTES) this.flush();
  }

  private flush(): void {
    for (let bytes = Buffer.concat(this.parts); bytes.length > 0; ) {
      bytes = bytes.subarray(writeSync(this.descriptor, bytes));
    }
    this.parts = [];
    this.bytes = 0;
  }

  /** Writes what is left, to the disk itself. */
  close(): void {
    this.flush();
    fsyncSync(this.descriptor);
    closeSync(this.descriptor);
  }
}

const LINES_OF_PAGE = 32_768;

/** Numbers of lines, one bit each. */
class LineSet {
  private readonly pages = new Map<number, Uint8Array>();

  add(line: number): void {
    const number = Math.floor(line / LINES_OF_PAGE);
    const page = this.pages.get(number) ?? new Uint8Array(LINES_OF_PAGE / 8);
    const at = line % LINES_OF_PAGE;
    page[at >> 3] = (page[at >> 3] ?? 0) | (1 << (at & 7));
    this.pages.set(number, page);
  }

  has(line: number): boolean {
    const at = line % LINES_OF_PAGE;
    const byte = this.pages.get(Math.floor(line / LINES_OF_PAGE))?.[at >> 3] ?? 0;
    return (byte & (1 << (at & 7))) !== 0;
  }
}

const field = (value: string | number | null): string => {
  const text = String(value ?? '');
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

const csvLine = (values: readonly (string | number | null)[]): Buffer =>
  Buffer.from(`${values.map(field).join(',')}\n`);

/** `--rejects` that cannot be done: its file is there already, or the file has no lines. */
class RejectsError extends Error {
  override readonly name = 'RejectsError';
  readonly exitCode = 2;
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

/**
 * The rows of a file that are not loaded. Their lines are copied byte for byte below the lines
 * above the values, so that the copy can be mended and loaded like the file itself; a table beside
 * it has the reasons. Both are put in their places whole, just before the load is committed. A
 * load that fails leaves neither.
 */
export class RejectsFile {
  readonly path: string;
  /** Opens the text that is made of the lines; the file itself, unless that is an archive. */
  text: () => AsyncIterable<Buffer>;
  /** What ends a line, in the encoding of the file. */
  lineEnd: Buffer = LF;
  /** Whether the file of the rows lies in its place. */
  isPlaced = false;
  private readonly loaded: string;
  private readonly overwrites: boolean;
  private readonly reasons: FileWriter;
  /** Begins the names of files that are being written. */
  private readonly own: string;
  private readonly kept = new LineSet();
  private readonly goingOn = new LineSet();
  private above = 0;
  private isEmpty = true;
  private isOpen = true;

  private constructor(path: string, { path: loaded, bytes }: SourceFile, overwrites: boolean) {
    this.path = path;
    this.loaded = loaded;
    this.text = bytes;
    this.overwrites = overwrites;
    this.own = `${path}.${randomBytes(6).toString('hex')}`;
    this.reasons = new FileWriter(`${this.own}.reasons`);
    this.reasons.write(csvLine(['file', 'line', 'column', 'value', 'code', 'reason']));
  }

  /**
   * Begins the files of rejected rows and of their reasons.
   * @throws RejectsError when one is there already that may not be overwritten
   */
  static async begin(path: string, file: SourceFile, overwrites: boolean): Promise<RejectsFile> {
    for (const taken of [path, `${path}.reasons.csv`]) {
      if (overwrites || !(await exists(taken))) continue;
      const advice = 'name another file for the rejects, or take --overwrite';
      throw new RejectsError(`${taken} is there already: ${advice}`);
    }
    return new RejectsFile(path, file, overwrites);
  }

  /** @throws RejectsError always: what is read has no lines that could be copied */
  refuse(what: string): never {
    throw new RejectsError(`--rejects copies lines, and ${what} has none: load it without`);
  }

  /** Copies the lines up to one, which ends the header. */
  keepAbove(line: number): void {
    this.above = line;
  }

  /** A line that goes on with the row of the line before it. */
  goesOn(line: number): void {
    this.goingOn.add(line);
  }

  /** Notes a reason, and copies the row that it is about. */
  add({ file, line, column, value, code, message }: LoadProblem): void {
    this.isEmpty = false;
    this.reasons.write(csvLine([file ?? this.loaded, line, column, value, code, message]));
    // A description in a mapping is no row of the file.
    if (line !== null && file === undefined) this.kept.add(line);
  }

  /** Puts both files in their places, whole; without a rejected row there are none. */
  async place(): Promise<void> {
    this.endReasons();
    if (this.isEmpty) return;
    const writer = new FileWriter(`${this.own}.rows`);
    try {
      await this.copyLines(writer);
    } finally {
      writer.close();
    }
    const place = this.overwrites ? rename : link;
    await place(`${this.own}.reasons`, `${this.path}.reasons.csv`);
    // A link is refused when the name was taken meanwhile; a rename takes it.
    await place(`${this.own}.rows`, this.path).catch(async (error) => {
      await rm(`${this.path}.reasons.csv`, { force: true });
      throw error;
    });
    this.isPlaced = true;
  }

  /** Clears up; with `failed` the load did not happen, and there are no rejects of it. */
  async end({ failed }: { readonly failed: boolean }): Promise<void> {
    this.endReasons();
    const placed = failed && this.isPlaced ? [this.path, `${this.path}.reasons.csv`] : [];
    for (const path of [`${this.own}.reasons`, `${this.own}.rows`, ...placed]) {
      await rm(path, { force: true });
    }
  }

  private async copyLines(writer: FileWriter): Promise<void> {
    const { lineEnd, above, kept, goingOn } = this;
    let line = 1;
    let isKept = above > 0 || kept.has(1);
    for await (const chunk of this.text()) {
      for (let at = 0; at < chunk.length; ) {
        let end = chunk.indexOf(lineEnd, at);
        while (end >= 0 && end % lineEnd.length !== 0) end = chunk.indexOf(lineEnd, end + 1);
        const next = end < 0 ? chunk.length : end + lineEnd.length;
        if (isKept) writer.write(chunk.subarray(at, next));
        at = next;
        if (end < 0) continue;
        line += 1;
        isKept = line <= above || kept.has(line) || (isKept && goingOn.has(line));
      }
    }
  }

  private endReasons(): void {
    if (this.isOpen) this.reasons.close();
    this.isOpen = false;
  }
}
