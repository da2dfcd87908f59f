import type { LoadProgress } from '../ingest/request.ts';
import { countText } from './output.ts';
import { barText, CLEAR, EVERY_MS, type Screen, stderrScreen, timeText } from './progress-text.ts';

/** Shows how far a load is. */
interface LoadProgressDisplay {
  update(state: LoadProgress): void;
  /** Clears the line of a terminal, so that what follows stands alone. */
  end(): void;
}

/** Without a size there are no tenths to tell; then a line for each million values has to do. */
const ROWS_A_LINE = 1_000_000;

const STEPS: Readonly<Record<LoadProgress['step'], string>> = {
  hashing: 'hashing the file',
  reading: 'reading',
  comparing: 'comparing with the database',
  writing: 'writing',
};

/** How much of the file has been read, from 0 to 1; null when its size is not known. */
const shareOf = ({ bytes, bytesTotal }: LoadProgress): number | null =>
  bytesTotal === null || bytesTotal === 0 ? null : Math.min(1, bytes / bytesTotal);

const rowsText = (rows: number): string => `${countText(rows)} ${rows === 1 ? 'row' : 'rows'}`;

function factsOf(state: LoadProgress, elapsedMs: number): string {
  const { step, rows } = state;
  if (step === 'hashing') return STEPS[step];
  if (step !== 'reading') return `${STEPS[step]} · ${rowsText(rows)}`;
  const share = shareOf(state);
  const seconds = elapsedMs / 1000;
  const facts = [rowsText(rows)];
  if (seconds > 0) facts.push(`${countText(rows / seconds)} rows/s`);
  if (share !== null && share > 0 && share < 1) {
    facts.push(`${timeText((seconds * (1 - share)) / share)} left`);
  }
  return facts.join(' · ');
}

/** One line that changes: a bar with rate and time left. */
function onTerminal({ write, now }: Screen): LoadProgressDisplay {
  let began = now();
  let last = Number.NEGATIVE_INFINITY;
  let step: string | null = null;
  return {
    update(state) {
      const time = now();
      if (step === 'hashing' && state.step === 'reading') began = time;
      if (state.step === step && time - last < EVERY_MS) return;
      [last, step] = [time, state.step];
      const hasShare = state.step === 'reading' || state.step === 'hashing';
      const share = hasShare ? shareOf(state) : null;
      const bar = share === null ? '' : `${barText(share)} · `;
      write(`${CLEAR}${bar}${factsOf(state, time - began)}`);
    },
    end() {
      if (step !== null) write(CLEAR);
    },
  };
}

/** Plain lines: one for each tenth of the file, and one for each step after it. */
function inPipe({ write, now }: Screen): LoadProgressDisplay {
  let began = now();
  let told = 0;
  let step: string = 'reading';
  return {
    update(state) {
      if (state.step === 'hashing') {
        if (told === 0) began = now();
        return;
      }
      const elapsed = now() - began;
      if (state.step !== step) {
        step = state.step;
        write(`${factsOf(state, elapsed)}\n`);
      }
      if (state.step !== 'reading') return;
      const share = shareOf(state);
      const reached = share === null ? state.rows / ROWS_A_LINE : Math.floor(share * 10);
      if (Math.floor(reached) <= told) return;
      told = Math.floor(reached);
      const percent = share === null ? '' : `${told * 10} % · `;
      write(`${percent}${factsOf(state, elapsed)}\n`);
    },
    end() {},
  };
}

/** Shows the progress of one load: a bar on a terminal, a line for each 10 % elsewhere. */
export const showProgress = (screen: Screen): LoadProgressDisplay =>
  screen.isTerminal ? onTerminal(screen) : inPipe(screen);

/** Shows nothing, for cron. */
export const NO_PROGRESS: LoadProgressDisplay = { update: () => {}, end: () => {} };

/** Progress on stderr. */
export const progressOnStderr = (): LoadProgressDisplay => showProgress(stderrScreen());
