import { Socket } from 'node:net';
import pg from 'pg';

/** A connection to PostgreSQL that can be closed without the server. */
export class SocketClient extends pg.Client {
  readonly #socket: Socket;

  constructor(config: pg.ClientConfig) {
    const socket = new Socket();
    super({ ...config, stream: () => socket });
    this.#socket = socket;
  }

  /** Closes the socket without a protocol message, which a silent server never answers. */
  destroySocket(): void {
    this.#socket.destroy();
  }
}
