/** Lets those who ask for the same while it is read share the reading; told apart by a text. */
export function sharedReading<T>(): (key: string, read: () => Promise<T>) => Promise<T> {
  const running = new Map<string, Promise<T>>();
  return (key, read) => {
    const known = running.get(key);
    if (known) return known;
    const reading = read().finally(() => running.delete(key));
    running.set(key, reading);
    return reading;
  };
}
