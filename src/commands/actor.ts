import { userInfo } from 'node:os';

/** Who runs a command, as the ledger keeps it. */
export function actor(): string {
  try {
    return userInfo().username;
  } catch {
    // An account without an entry in the list of users, as in some containers.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
