/*
 * The kernel drops a signal to process 1 of a container that has no handler for it, so that a stop
 * in the first seconds would wait for its SIGKILL. The first import of the program: commands and
 * the service add their own handlers later.
 */

const NUMBERS = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const;

if (process.pid === 1) {
  for (const [name, number] of Object.entries(NUMBERS)) {
    process.on(name, () => {
      // The exit code of a process that the signal ends.
      if (process.listenerCount(name) === 1) process.exit(128 + number);
    });
  }
}
