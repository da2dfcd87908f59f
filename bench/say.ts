/** Tells on stderr what the benchmark is doing, with the time. */
export const say = (what: string): void => {
  process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${what}\n`);
};
