import type { ArchiveProgress } from '../archive/format.ts';
import type { LoadProgress } from '../ingest/load/request.ts';
import { countText } from './output.ts';

/** The output of a progress display, and its clock. */
interface Screen {
  readonly isTerminal: boolean;
  write(text: string): void;
  /** Monotonic time in milliseconds. */
  now(): number;
}

/** Standard error, so that progress does not mix with data. */
const stderrScreen = (): Screen => ({
  isTerminal: process.stderr.isTTY === true,
  write: (text) => process.stderr.write(text),
  now: () => performance.now(),
});

/** Progress of long work: a text, rows or bytes of an archive, or the step of a load. */
type ProgressState = string | ArchiveProgress | LoadProgress;

/** Progress display of long work. */
export interface Progress {
  update(state: ProgressState): void;
  /** Clears the progress line of a terminal. */
  end(): void;
}

/** A formatted progress state. */
interface Shown {
  /** Each phase of the work has its own clock. */
  readonly phase: string;
  readonly text: string;
  /** Completed share of the work, from 0 to 1; null if unknown. */
  readonly share: number | null;
  /** Number of lines of this phase to have been written to a pipe so far. */
  readonly linesDue: number;
}

/** Minimum interval between updates of a terminal. */
const EVERY_MS = 100;
/** Minimum interval between text lines in a pipe. */
const EVERY_PIPED_S = 5;
/** Rows between two lines in a pipe for a file of unknown size. */
const ROWS_A_LINE = 1_000_000;
/** Control sequence that clears the current line. */
const CLEAR = '\r\u001b[2K';
const BAR = 24;

/** Seconds as minutes and seconds: 1:05. */
function timeText(seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

/** A progress bar with percentage for a share from 0 to 1. */
function barText(share: number): string {
  const full = Math.round(share * BAR);
  return `[${'#'.repeat(full)}${'-'.repeat(BAR - full)}] ${Math.floor(share * 100)} %`;
}

function shownArchive({ item, done, total, unit }: ArchiveProgress, seconds: number): Shown {
  const name = unit === 'bytes' ? '' : ` ${unit}`;
  const amount = (value: number): string =>
    unit === 'bytes' ? `${(value / 1e6).toFixed(1)} MB` : countText(value);
  const facts = [item, `${amount(done)} of ${amount(total)}${name}`];
  if (seconds > 0 && done > 0) {
    facts.push(`${amount(done / seconds)}${name}/s`);
    if (done < total) facts.push(`${timeText((seconds * (total - done)) / done)} left`);
  }
  const share = total > 0 ? done / total : 1;
  return { phase: unit, text: facts.join(' · '), share, linesDue: Math.floor(share * 10) };
}

function shownLoad({ step, rows, bytes, bytesTotal }: LoadProgress, seconds: number): Shown {
  const read = bytesTotal ? Math.min(1, bytes / bytesTotal) : null;
  if (step === 'hashing') {
    return { phase: step, text: 'hashing the file', share: read, linesDue: 0 };
  }
  const rowsText = `${countText(rows)} ${rows === 1 ? 'row' : 'rows'}`;
  if (step !== 'reading') {
    const name = step === 'comparing' ? 'comparing with the database' : step;
    return { phase: step, text: `${name} · ${rowsText}`, share: null, linesDue: 1 };
  }
  const facts = [rowsText];
  if (seconds > 0) facts.push(`${countText(rows / seconds)} rows/s`);
  if (read !== null && read > 0 && read < 1) {
    facts.push(`${timeText((seconds * (1 - read)) / read)} left`);
  }
  // A small file is read whole before its first row is counted.
  const linesDue = rows === 0 ? 0 : Math.floor(read === null ? rows / ROWS_A_LINE : read * 10);
  return { phase: step, text: facts.join(' · '), share: read, linesDue };
}

function shownOf(state: ProgressState, seconds: number): Shown {
  if (typeof state === 'string') {
    const linesDue = Math.floor(seconds / EVERY_PIPED_S);
    return { phase: 'text', text: state, share: null, linesDue };
  }
  return 'step' in state ? shownLoad(state, seconds) : shownArchive(state, seconds);
}

/** Shows progress as one updated line on a terminal, or as occasional lines in a pipe. */
export function openProgress({ isTerminal, write, now }: Screen = stderrScreen()): Progress {
  let phase: string | null = null;
  let began = now();
  let last = Number.NEGATIVE_INFINITY;
  let lines = 0;
  let isClear = true;
  return {
    update(state) {
      const time = now();
      let shown = shownOf(state, (time - began) / 1000);
      if (shown.phase !== phase) {
        if (phase !== null) began = time;
        [phase, last, lines] = [shown.phase, Number.NEGATIVE_INFINITY, 0];
        shown = shownOf(state, (time - began) / 1000);
      }
      const { text, share, linesDue } = shown;
      if (isTerminal) {
        if (time - last < EVERY_MS) return;
        [last, isClear] = [time, false];
        write(`${CLEAR}${share === null ? '' : `${barText(share)} · `}${text}`);
      } else if (linesDue > lines) {
        lines = linesDue;
        write(`${share === null ? '' : `${linesDue * 10} % · `}${text}\n`);
      }
    },
    end() {
      if (!isClear) write(CLEAR);
      isClear = true;
    },
  };
}

/** Shows nothing, for cron. */
export const NO_PROGRESS: Progress = { update: () => {}, end: () => {} };
