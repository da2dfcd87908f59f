import { randomBytes } from 'node:crypto';
import { appendFileSync, closeSync, fsyncSync, openSync } from 'node:fs';
import { access, link, rename, rm } from 'node:fs/promises';
import { EXIT, ExpectedError } from '../../std/base-errors.ts';
import { textCell } from '../../std/csv.ts';
import type { LoadProblem } from './load-error.ts';
import type { SourceFile } from './source-file.ts';

const LF = Buffer.from('\n');

/** Closes a new file once it is on the disk. */
function closeFlushed(file: number): void {
  fsyncSync(file);
  closeSync(file);
}

const LINES_OF_PAGE = 32_768;

/** A set of line numbers, one bit each. */
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

const csvLine = (values: readonly (string | number | null)[]): string =>
  `${values.map((each) => textCell(each === null ? null : String(each))).join(',')}\n`;

/** `--rejects` is not possible: its file exists, or the loaded file has no lines. */
class RejectsError extends ExpectedError {
  override readonly name = 'RejectsError';
  override readonly exitCode = EXIT.usage;
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

/**
 * Copies the lines of rejected rows, byte for byte, after the header, so that the copy can be
 * corrected and loaded like the original. A second file, `.reasons.csv`, holds the reasons. Both
 * files get their names when they are complete, just before the load commits. After a failed load
 * neither exists.
 */
export class RejectsFile {
  readonly path: string;
  /** Opens the text whose lines are copied: the file itself, or the part of an archive. */
  text: () => AsyncIterable<Buffer>;
  /** Line terminator in the encoding of the file. */
  lineEnd: Buffer = LF;
  /** True if the rejects file has its final name. */
  isPlaced = false;
  private readonly loaded: string;
  private readonly overwrites: boolean;
  /** Descriptor of the file of reasons. */
  private readonly reasons: number;
  /** Prefix of the names of temporary files. */
  private readonly temporary: string;
  private readonly rejected = new LineSet();
  private readonly continuations = new LineSet();
  private headerEnd = 0;
  private isEmpty = true;
  private isOpen = true;

  private constructor(path: string, { path: loaded, bytes }: SourceFile, overwrites: boolean) {
    this.path = path;
    this.loaded = loaded;
    this.text = bytes;
    this.overwrites = overwrites;
    this.temporary = `${path}.${randomBytes(6).toString('hex')}`;
    this.reasons = openSync(`${this.temporary}.reasons`, 'wx');
    appendFileSync(this.reasons, csvLine(['file', 'line', 'column', 'value', 'code', 'reason']));
  }

  /**
   * Runs a load with a rejects file, or with null if none is requested. A load that fails leaves no
   * rejects.
   * @throws RejectsError if a target file exists and may not be overwritten
   */
  static async during<T>(
    request: { readonly file: string; readonly overwrite: boolean } | undefined,
    file: SourceFile,
    load: (rejects: RejectsFile | null) => Promise<T>,
  ): Promise<T> {
    if (!request) return load(null);
    const { file: path, overwrite } = request;
    for (const taken of [path, `${path}.reasons.csv`]) {
      if (overwrite || !(await exists(taken))) continue;
      const advice = 'name another file for the rejects, or use --overwrite';
      throw new RejectsError(`${taken} exists already: ${advice}`);
    }
    const rejects = new RejectsFile(path, file, overwrite);
    let failed = true;
    try {
      const loaded = await load(rejects);
      failed = false;
      return loaded;
    } finally {
      await rejects.end(failed);
    }
  }

  /** @throws RejectsError always: the file has no lines to copy */
  refuse(what: string): never {
    throw new RejectsError(
      `--rejects copies lines, but ${what} has none: load it without --rejects`,
    );
  }

  /** Copies all lines up to this one: the header. */
  keepHeader(line: number): void {
    this.headerEnd = line;
  }

  /** Marks a line as the continuation of the row of the line before. */
  continueRow(line: number): void {
    this.continuations.add(line);
  }

  /** Writes a reason and marks the line of its row. */
  add({ file, line, column, value, code, message }: LoadProblem): void {
    this.isEmpty = false;
    appendFileSync(
      this.reasons,
      csvLine([file ?? this.loaded, line, column, value, code, message]),
    );
    // A problem in the mapping has no row in the file.
    if (line !== null && file === undefined) this.rejected.add(line);
  }

  /** Moves both files to their final names. Without a rejected row there are no files. */
  async place(): Promise<void> {
    this.endReasons();
    if (this.isEmpty) return;
    const rows = openSync(`${this.temporary}.rows`, 'wx');
    try {
      await this.copyLines(rows);
    } finally {
      closeFlushed(rows);
    }
    const move = this.overwrites ? rename : link;
    await move(`${this.temporary}.reasons`, `${this.path}.reasons.csv`);
    // `link` fails if the name was taken meanwhile; `rename` replaces the file.
    await move(`${this.temporary}.rows`, this.path).catch(async (error) => {
      await rm(`${this.path}.reasons.csv`, { force: true });
      throw error;
    });
    this.isPlaced = true;
  }

  /** Removes temporary files; with `failed` also the final ones, because nothing was loaded. */
  private async end(failed: boolean): Promise<void> {
    this.endReasons();
    const placed = failed && this.isPlaced ? [this.path, `${this.path}.reasons.csv`] : [];
    for (const path of [`${this.temporary}.reasons`, `${this.temporary}.rows`, ...placed]) {
      await rm(path, { force: true });
    }
  }

  private async copyLines(file: number): Promise<void> {
    const { lineEnd, headerEnd, rejected, continuations } = this;
    let line = 1;
    let isKept = headerEnd > 0 || rejected.has(1);
    for await (const chunk of this.text()) {
      for (let at = 0; at < chunk.length; ) {
        let end = chunk.indexOf(lineEnd, at);
        while (end >= 0 && end % lineEnd.length !== 0) end = chunk.indexOf(lineEnd, end + 1);
        const next = end < 0 ? chunk.length : end + lineEnd.length;
        if (isKept) appendFileSync(file, chunk.subarray(at, next));
        at = next;
        if (end < 0) continue;
        line += 1;
        isKept = line <= headerEnd || rejected.has(line) || (isKept && continuations.has(line));
      }
    }
  }

  private endReasons(): void {
    if (this.isOpen) closeFlushed(this.reasons);
    this.isOpen = false;
  }
}
