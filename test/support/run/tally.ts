export interface Tally {
  readonly passed: number;
  readonly failed: number;
}

/** Callbacks of a TAP reader. */
export interface TapListener {
  /** Called for a failed assertion, with its titles, outermost first, and its details. */
  onFailure?(titles: readonly string[], details: readonly string[]): void;
  /** Called at the end of a test file, with its line and its own count. */
  onFile?(line: string, tally: Tally): void;
}

interface TestLevel {
  title: string;
  /** True if a test point was seen at this depth since the last one that is less deep. */
  points: boolean;
  failed: boolean;
}

const INDENT = 4;

/** The line of a test file that shared its process with others: its title is its path. */
const IN_GROUP = /^ {4}(not )?ok \d+ - test[\\/]\S+\.test\.ts\b/;
/** The line of such a process. */
const GROUP = /^(not )?ok \d+ - \S+\.test\.mjs\b/;

/**
 * Counts the assertions of a TAP text as its own summary does: a test that has assertions counts
 * by them, and by itself only when it failed though none of them did (a crash, a missed plan).
 * Skipped and to-do points count as neither.
 */
export class TapReader {
  passed = 0;
  failed = 0;
  readonly #listener: TapListener;
  readonly #levels: TestLevel[] = [];
  #before: Tally = { passed: 0, failed: 0 };
  #yaml: { indent: string; lines: string[] } | null = null;
  #failure: string[] | null = null;

  constructor(listener: TapListener = {}) {
    this.#listener = listener;
  }

  /** Takes one line, without its line break. */
  line(line: string): void {
    if (this.#yaml) {
      if (line === `${this.#yaml.indent}...`) this.#endDetails();
      else this.#yaml.lines.push(line.slice(this.#yaml.indent.length));
      return;
    }
    const [, yaml] = /^( *)---$/.exec(line) ?? [];
    if (yaml !== undefined) {
      this.#yaml = { indent: yaml, lines: [] };
      return;
    }
    this.#endDetails();
    if (/^ *Bail out!/.test(line)) this.#fail([line.trim()]);
    const [, indent, title] = /^( *)# Subtest: (.*)$/.exec(line) ?? [];
    if (title !== undefined) this.#levelAt((indent?.length ?? 0) / INDENT).title = title;
    else this.#point(line);
  }

  /** Ends the text. */
  end(): void {
    this.#endDetails();
  }

  #levelAt(depth: number): TestLevel {
    for (let at = this.#levels.length; at <= depth; at += 1) {
      this.#levels[at] = { title: '', points: false, failed: false };
    }
    return this.#levels[depth] as TestLevel;
  }

  #point(line: string): void {
    const [matched, indent = '', not, rest = ''] = /^( *)(not )?ok\b(.*)$/.exec(line) ?? [];
    if (matched === undefined) return;
    const depth = indent.length / INDENT;
    const children = this.#levels[depth + 1];
    const isLeaf = !children?.points;
    const isExcused = / # (skip|todo)\b/i.test(rest);
    const isFailure = not !== undefined && !isExcused;
    const title = rest.replace(/^ \d+( - )?/, '').replace(/ # time=.*$/, '');
    if (isFailure && (isLeaf || !children?.failed)) {
      this.#fail([...this.#levels.slice(0, depth).map((each) => each.title), title]);
    }
    if (!isFailure && isLeaf && !isExcused) this.passed += 1;
    this.#levels.length = Math.min(this.#levels.length, depth + 1);
    const own = this.#levelAt(depth);
    own.points = true;
    own.failed ||= isFailure;
    if (depth === 0 || (depth === 1 && IN_GROUP.test(line))) this.#endFile(line.trimStart());
  }

  #endFile(line: string): void {
    if (GROUP.test(line)) return;
    const { passed, failed } = this;
    const { passed: passedBefore, failed: failedBefore } = this.#before;
    this.#before = { passed, failed };
    const own = { passed: passed - passedBefore, failed: failed - failedBefore };
    this.#listener.onFile?.(line, own);
  }

  #fail(titles: string[]): void {
    this.failed += 1;
    this.#failure = titles;
  }

  #endDetails(): void {
    const lines = this.#yaml?.lines ?? [];
    if (this.#failure) this.#listener.onFailure?.(this.#failure, lines);
    this.#failure = null;
    this.#yaml = null;
  }
}

/** The count of a whole text. */
export function tallyOf(tap: string): Tally {
  const reader = new TapReader();
  for (const line of tap.split('\n')) reader.line(line);
  reader.end();
  return { passed: reader.passed, failed: reader.failed };
}

/** The count of each test file in a text, by its path. */
export function talliesOf(tap: string): ReadonlyMap<string, Tally> {
  const tallies = new Map<string, Tally>();
  const reader = new TapReader({
    onFile: (line, tally) => {
      const [, path] = /^(?:not )?ok \d+ - (\S+)/.exec(line) ?? [];
      if (path !== undefined) tallies.set(path, tally);
    },
  });
  for (const line of tap.split('\n')) reader.line(line);
  return tallies;
}
