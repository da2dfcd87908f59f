/** Preloaded with `--import`: shifts the clock of a process by CLOCK_SHIFT_MS. */
const shiftMs = Number(process.env['CLOCK_SHIFT_MS'] ?? 0);
const Original = Date;
const now = Date.now.bind(Date);

class Shifted extends Original {
  constructor(...given: [] | [number | string | Date]) {
    if (given.length === 0) super(now() + shiftMs);
    else super(...(given as [number]));
  }

  static override now(): number {
    return now() + shiftMs;
  }
}

globalThis.Date = Shifted as DateConstructor;
