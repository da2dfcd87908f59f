/** Answers from what is kept under a key, and reads it where nothing is. */
type KeptReadings<T> = (key: string, read: () => Promise<T>) => Promise<T>;

/**
 * Keeps what was read of states that never change, for the keys that were used last; who asks
 * while it is read shares the reading, and one that failed is not kept.
 * @param keep how many are kept
 */
export function keptReadings<T>(keep: number): KeptReadings<T> {
  const kept = new Map<string, Promise<T>>();
  return (key, read) => {
    const found = kept.get(key);
    const reading = found ?? read();
    // Taken out and put back, the map is in the order of use.
    kept.delete(key);
    kept.set(key, reading);
    if (!found) {
      reading.catch(() => {
        if (kept.get(key) === reading) kept.delete(key);
      });
    }
    for (const oldest of kept.keys()) {
      if (kept.size <= keep) break;
      kept.delete(oldest);
    }
    return reading;
  };
}
