/** How far a long piece of work has come. */
export interface Meter {
  /**
   * @param what what is being done, like the name of a table
   * @param done rows or bytes so far, of `total`
   */
  update(what: string, done: number, total: number, unit: string): void;
  /** Clears the line, so that the result stands alone. */
  end(): void;
}

const EVERY_MS = 100;
const BAR = 20;

const amount = (count: number, unit: string): string =>
  unit === 'bytes' ? `${(count / 1e6).toFixed(1)} MB` : `${Math.round(count).toLocaleString('en')}`;

function timeText(seconds: number): string {
  if (!Number.isFinite(seconds)) return '';
  const whole = Math.ceil(seconds);
  if (whole < 60) return ` · ${whole} s left`;
  return ` · ${Math.floor(whole / 60)} min ${whole % 60} s left`;
}

/** `52 % · series · 1,200 of 2,400 rows · 300 rows/s · 4 s left` */
export function meterText(
  what: string,
  done: number,
  total: number,
  unit: string,
  seconds: number,
): string {
  const percent = total > 0 ? Math.floor((100 * done) / total) : 100;
  const rate = seconds > 0 ? done / seconds : 0;
  const part = unit === 'bytes' ? '' : ` ${unit}`;
  return (
    `${percent} % · ${what} · ${amount(done, unit)} of ${amount(total, unit)}${part}` +
    ` · ${amount(rate, unit)}${part}/s${timeText((total - done) / rate)}`
  );
}

const barOf = (done: number, total: number): string => {
  const filled = total > 0 ? Math.floor((BAR * done) / total) : BAR;
  return `[${'#'.repeat(filled)}${'-'.repeat(BAR - filled)}]`;
};

/** Progress on stderr: a bar on a terminal, one line per 10 % in a pipe. */
export function openMeter(): Meter {
  const isTerminal = process.stderr.isTTY === true;
  let unitNow = '';
  let started = 0;
  let last = 0;
  let tenths = 0;
  return {
    update(what, done, total, unit) {
      const now = Date.now();
      // The sums of the files are one piece of work, the rows another.
      if (unit !== unitNow) [unitNow, started, last, tenths] = [unit, now, 0, 0];
      const text = meterText(what, done, total, unit, (now - started) / 1000);
      if (isTerminal) {
        if (now - last < EVERY_MS) return;
        process.stderr.write(`\r\u001b[2K${barOf(done, total)} ${text}`);
      } else {
        const reached = total > 0 ? Math.floor((10 * done) / total) : 0;
        if (reached <= tenths) return;
        tenths = reached;
        process.stderr.write(`${text}\n`);
      }
      last = now;
    },
    end() {
      if (isTerminal && last > 0) process.stderr.write('\r\u001b[2K');
    },
  };
}
