import type { DestinationStream } from 'pino';

/** What a pipe takes in one piece, which lines of other processes cannot part. */
const PIECE_BYTES = 4_096;

/**
 * Writes the lines of one turn of the event loop together: under load each write costs more than
 * the line. What is held when the process ends is written then, and after a fatal line at once.
 */
export class Together implements DestinationStream {
  readonly #destination: DestinationStream;
  #held = '';
  #bytes = 0;
  #isDue = false;

  constructor(destination: DestinationStream) {
    this.#destination = destination;
    process.once('exit', () => this.flushSync());
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#bytes + bytes > PIECE_BYTES) this.flushSync();
    this.#held += line;
    this.#bytes += bytes;
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      this.flushSync();
    });
  }

  /** Called by pino after a line of the level `fatal`. */
  flushSync(): void {
    const text = this.#held;
    this.#held = '';
    this.#bytes = 0;
    if (text !== '') this.#destination.write(text);
  }
}
