/**
 * Where the database is: one of several servers that hold it, in the order in which they are to be
 * tried. All connections go to one of them at a time, since another may not have its newest data.
 */
export class Servers {
  readonly #all: readonly string[];
  #current: string;

  /** @param urls an address for each server; at least one */
  constructor(urls: readonly string[]) {
    const [first] = urls;
    if (first === undefined) throw new Error('a database has at least one server');
    this.#all = urls;
    this.#current = first;
  }

  /** The address of the server in use. */
  get current(): string {
    return this.#current;
  }

  /** The addresses of the others. */
  get others(): readonly string[] {
    return this.#all.filter((url) => url !== this.#current);
  }

  /** Uses this server from now on. */
  use(url: string): void {
    this.#current = url;
  }
}
