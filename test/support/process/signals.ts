/**
 * Sends a signal to one process.
 * @returns false if the process has already exited
 */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  // 0 would be the group of the test.
  if (pid <= 0) throw new Error(`${pid} is not one process`);
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
