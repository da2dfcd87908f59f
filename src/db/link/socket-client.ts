import { Socket } from 'node:net';
import pg from 'pg';

export interface SessionConfig extends pg.ClientConfig {
  /** Settings of PostgreSQL for the session. */
  readonly settings: Readonly<Record<string, string>>;
}

type OnConnect = (error: Error) => void;

/** A connection to PostgreSQL with settings, which can be closed without the server. */
export class SocketClient extends pg.Client {
  readonly #socket: Socket;
  readonly #settings: readonly (readonly [name: string, value: string])[];

  constructor({ settings, ...config }: SessionConfig) {
    const socket = new Socket();
    super({ ...config, stream: () => socket });
    this.#socket = socket;
    this.#settings = Object.entries(settings);
  }

  /** Connects, and sets the settings of the session. The pool uses the callback. */
  override connect(): Promise<pg.Client>;
  override connect(callback: OnConnect): void;
  override connect(callback?: OnConnect): Promise<pg.Client> | undefined {
    if (callback === undefined) {
      return new Promise((resolve, reject) => {
        this.#connect((error) => (error ? reject(error) : resolve(this)));
      });
    }
    this.#connect(callback as (error: Error | null) => void);
    return undefined;
  }

  #connect(done: (error: Error | null) => void): void {
    // The pool listens only after the connection is made; an event without a listener ends Node.
    const ignore = (): void => {};
    this.on('error', ignore);
    const finish = (error: Error | null): void => {
      done(error);
      this.removeListener('error', ignore);
    };
    super.connect((error: Error | null) => {
      if (error) finish(error);
      else this.query(this.#statement(), finish);
    });
  }

  /** One round trip for all settings. */
  #statement(): string {
    const parts = this.#settings.map(
      ([name, value]) => `set_config(${pg.escapeLiteral(name)}, ${pg.escapeLiteral(value)}, false)`,
    );
    return `select ${parts.join(', ')}`;
  }

  /** Closes the socket without a protocol message, which a silent server never answers. */
  destroySocket(): void {
    this.#socket.destroy();
  }
}
