/** Where progress is shown, and by what clock. */
export interface Screen {
  readonly isTerminal: boolean;
  write(text: string): void;
  /** Milliseconds, growing. */
  now(): number;
}

/** Standard error, so that it does not mix with data. */
export const stderrScreen = (): Screen => ({
  isTerminal: process.stderr.isTTY === true,
  write: (text) => process.stderr.write(text),
  now: () => performance.now(),
});

/** A terminal is not written to more often. */
export const EVERY_MS = 100;

/** Goes back to the start of the line and empties it. */
export const CLEAR = '\r\u001b[2K';

const BAR = 24;

/** Seconds as minutes and seconds: 1:05. */
export function timeText(seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

/** A bar with its percentage, of a share from 0 to 1. */
export function barText(share: number): string {
  const full = Math.round(share * BAR);
  return `[${'#'.repeat(full)}${'-'.repeat(BAR - full)}] ${Math.floor(share * 100)} %`;
}
