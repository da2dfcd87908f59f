/** Logs the progress of the benchmark to stderr, with the time. */
export const log = (what: string): void => {
  process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${what}\n`);
};
