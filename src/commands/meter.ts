import { countText } from './output.ts';
import { barText, CLEAR, EVERY_MS, type Screen, timeText } from './progress-text.ts';

/** How far a long piece of work has come. */
export interface Measured {
  /** What is being done, like the name of a table. */
  readonly what: string;
  readonly done: number;
  readonly total: number;
  readonly unit: 'rows' | 'bytes';
}

/** Shows how far a long piece of work is. */
interface Meter {
  update(state: Measured): void;
  /** Clears the line of a terminal, so that the result stands alone. */
  end(): void;
}

const amount = (value: number, unit: Measured['unit']): string =>
  unit === 'bytes' ? `${(value / 1e6).toFixed(1)} MB` : countText(value);

function factsOf({ what, done, total, unit }: Measured, seconds: number): string {
  const name = unit === 'bytes' ? '' : ` ${unit}`;
  const facts = [what, `${amount(done, unit)} of ${amount(total, unit)}${name}`];
  if (seconds > 0 && done > 0) {
    facts.push(`${amount(done / seconds, unit)}${name}/s`);
    if (done < total) facts.push(`${timeText((seconds * (total - done)) / done)} left`);
  }
  return facts.join(' · ');
}

const shareOf = ({ done, total }: Measured): number => (total > 0 ? done / total : 1);

/** Work whose amount is known: a bar on a terminal, a line for each 10 % elsewhere. */
export function openMeter({ isTerminal, write, now }: Screen): Meter {
  let unit: Measured['unit'] | null = null;
  let began = 0;
  let last = Number.NEGATIVE_INFINITY;
  let told = 0;
  return {
    update(state) {
      const time = now();
      // The sums of the files are one piece of work, the rows another.
      if (state.unit !== unit) {
        [unit, began, last, told] = [state.unit, time, Number.NEGATIVE_INFINITY, 0];
      }
      const share = shareOf(state);
      const facts = factsOf(state, (time - began) / 1000);
      if (isTerminal) {
        if (time - last < EVERY_MS) return;
        last = time;
        write(`${CLEAR}${barText(share)} · ${facts}`);
      } else if (Math.floor(share * 10) > told) {
        told = Math.floor(share * 10);
        write(`${told * 10} % · ${facts}\n`);
      }
    },
    end() {
      if (isTerminal && unit !== null) write(CLEAR);
    },
  };
}
