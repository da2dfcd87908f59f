import {
  CODES,
  csvDescriptions,
  csvPoints,
  dayOf,
  ndjson,
  type TextFile,
  withdrawals,
} from './csv-files.ts';
import { Random } from './random.ts';
import { ecb, fed, mappedTable, usgs, worldbank } from './source-files.ts';

/** One command of a sequence. */
export interface Step {
  readonly words: readonly string[];
  /** Files that the command reads, by name in the folder of the sequence. */
  readonly files: Readonly<Record<string, string | Buffer>>;
}

/** A placeholder for a batch number: the n-th newest of the ledger, or of the applied batches. */
export const BATCH = /^<(batch|applied) -(\d+)>$/;

const LOADED = {
  csv: csvPoints,
  described: csvDescriptions,
  ndjson,
  ecb,
  fed,
  usgs,
  worldbank,
} as const;

const WEIGHTS = [
  [30, 'csv'],
  [10, 'described'],
  [10, 'ndjson'],
  [9, 'ecb'],
  [6, 'fed'],
  [6, 'usgs'],
  [5, 'worldbank'],
] as const;

/** Properties of a file on which options depend. */
interface FileKind {
  readonly isText: boolean;
  /** True if it states its vintage. */
  readonly hasVintage: boolean;
}

/** True if `--rejects` can copy lines of a file: it refuses workbooks and XML. */
const hasLines = ({ ending }: TextFile): boolean => !/^[.](xlsx|xml)$/.test(ending);

/** The options that every format takes. */
function loadOptions(random: Random, number: number, { isText, hasVintage }: FileKind): string[] {
  return [
    ...(random.chance(0.12) ? ['--dry-run'] : []),
    ...(random.chance(0.7) ? ['--allow-corrections', '--reason', `reason ${number}`] : []),
    ...(random.chance(0.02) ? ['--allow-corrections'] : []),
    ...(random.chance(0.6) ? ['--accept-jumps'] : []),
    ...(random.chance(hasVintage ? 0.02 : 0.2) ? ['--vintage', random.pick(VINTAGES)] : []),
    ...(random.chance(0.25) && isText ? ['--rejects', `rejects-${number}.csv`] : []),
    ...(random.chance(0.8) ? ['--json'] : []),
    ...(random.chance(0.05) ? ['--quiet'] : []),
  ];
}

const VINTAGES = ['2026-01-20', '2026-01-20', '2026-02-20', '2025-12-20', '2026-03-20'];

/** Writes the commands of one sequence. */
class SequenceWriter {
  readonly steps: Step[] = [];
  private readonly random: Random;
  /** Words of earlier loads, so that a file can be loaded again. */
  private readonly loads: { readonly words: string[]; readonly kind: FileKind }[] = [];

  constructor(random: Random) {
    this.random = random;
  }

  add(): void {
    const { random } = this;
    const kind = random.weighted([
      [60, 'load'],
      [6, 'again'],
      [4, 'several'],
      [13, 'withdraw'],
      [24, 'undo'],
      [4, 'show'],
    ] as const);
    if (kind === 'load') this.load();
    else if (kind === 'again') this.again();
    else if (kind === 'several') this.several();
    else if (kind === 'withdraw') this.withdraw();
    else if (kind === 'undo') this.undo();
    else this.show();
  }

  private get number(): number {
    return this.steps.length + 1;
  }

  private nameOf({ ending }: TextFile): string {
    return `file-${this.number}${ending}`;
  }

  private load(): void {
    const { random } = this;
    if (random.chance(0.15)) {
      this.table();
      return;
    }
    const kind = random.weighted(WEIGHTS);
    const file = LOADED[kind](random);
    const name = this.nameOf(file);
    const words = ['load', kind === 'described' ? 'csv' : kind, name];
    const hasVintage = !['csv', 'described', 'ndjson'].includes(kind);
    const isText = hasLines(file);
    this.push(words, { [name]: file.content }, { isText, hasVintage });
  }

  private table(): void {
    const { file, mapping } = mappedTable(this.random);
    const name = this.nameOf(file);
    const map = `map-${this.number}.yaml`;
    const files = { [name]: file.content, [map]: mapping };
    const words = ['load', 'table', name, '--map', map];
    this.push(words, files, { isText: hasLines(file), hasVintage: false });
  }

  private push(words: string[], files: Step['files'], kind: FileKind): void {
    this.loads.push({ words, kind });
    const options = loadOptions(this.random, this.number, kind);
    this.steps.push({ words: [...words, ...options], files });
  }

  /** Loads the same file again, perhaps with other options. */
  private again(): void {
    if (this.loads.length === 0) {
      this.load();
      return;
    }
    const { words, kind } = this.random.pick(this.loads);
    const options = loadOptions(this.random, this.number, kind);
    this.steps.push({ words: [...words, ...options], files: {} });
  }

  private several(): void {
    const files = Array.from({ length: 2 }, (_, index) => {
      const file = csvPoints(this.random);
      return [`file-${this.number}-${index + 1}${file.ending}`, file.content] as const;
    });
    const names = files.map(([name]) => name);
    const missing = this.random.chance(0.1) ? ['no-such-file.csv'] : [];
    const options = loadOptions(this.random, this.number, {
      isText: false,
      hasVintage: false,
    });
    const words = ['load', 'csv', ...names, ...missing, ...options];
    this.steps.push({ words, files: Object.fromEntries(files) });
  }

  private withdraw(): void {
    const { random } = this;
    const options = [
      ...(random.chance(0.02) ? [] : ['--reason', random.chance(0.02) ? ' ' : 'not assessed']),
      ...(random.chance(0.12) ? ['--dry-run'] : []),
      ...(random.chance(0.8) ? ['--json'] : []),
    ];
    if (random.chance(0.3)) {
      const name = `withdraw-${this.number}.csv`;
      const files = { [name]: withdrawals(random).content };
      this.steps.push({ words: ['withdraw', '--file', name, ...options], files });
      return;
    }
    const code = random.chance(0.04) ? 'NO-SUCH-1' : random.pick(CODES);
    const [from, to] = [dayOf(random), dayOf(random)].sort();
    const which = random.weighted([
      [2, ['--date', ...new Set([dayOf(random), dayOf(random)])]],
      [5, ['--date', dayOf(random)]],
      [2, ['--from', from ?? '']],
      [2, ['--to', to ?? '']],
      [2, ['--from', from ?? '', '--to', to ?? '']],
      [1, ['--all']],
      [0.5, ['--date', '2026-02-30']],
      [0.3, ['--from', to ?? '', '--to', from ?? '']],
      [0.3, []],
    ]);
    this.steps.push({ words: ['withdraw', code, ...which, ...options], files: {} });
  }

  private batch(): string {
    if (this.random.chance(0.02)) return this.random.pick(['99999', '0', 'x']);
    const back = this.random.weighted([
      [6, 0],
      [3, 1],
      [2, 2],
      [2, 3],
      [2, 5],
      [1, 8],
    ]);
    return `<${this.random.chance(0.85) ? 'applied' : 'batch'} -${back}>`;
  }

  private undo(): void {
    const options = [
      ...['--reason', 'a mistake'],
      ...(this.random.chance(0.12) ? ['--dry-run'] : []),
      ...(this.random.chance(0.8) ? ['--json'] : []),
    ];
    this.steps.push({ words: ['load', 'undo', this.batch(), ...options], files: {} });
  }

  private show(): void {
    const words = this.random.pick([
      ['load', 'show', this.batch(), '--json'],
      ['load', 'log', '--json', '--limit', '30'],
      ['load', 'log', '--json', '--market', 'nickel'],
      ['db', 'hash', '--json'],
    ]);
    this.steps.push({ words, files: {} });
  }
}

/** The commands of a sequence; the same for the same seed and number. */
export function sequenceOf(seed: string, number: number): readonly Step[] {
  const random = new Random(`loads ${seed} ${number}`);
  const writer = new SequenceWriter(random);
  for (let left = random.int(6, 14); left > 0; left -= 1) writer.add();
  // Finally compares the whole ledger and the data hash.
  writer.steps.push({ words: ['load', 'log', '--json', '--limit', '99'], files: {} });
  writer.steps.push({ words: ['db', 'hash', '--json'], files: {} });
  return writer.steps;
}
