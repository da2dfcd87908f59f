import type { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import pg from 'pg';

/** How long the request to cancel may take; the server's own limit ends what it does not reach. */
const PATIENCE_MS = 2_000;

/** What the driver knows of a session, and does not declare. */
interface Session {
  readonly host: string;
  readonly port: number;
  readonly ssl: boolean | object;
  readonly sslNegotiation?: string;
  readonly processID: number | null;
  readonly secretKey: number | null;
}

/** A line to the server before anybody has logged in over it. */
interface Line extends EventEmitter {
  readonly stream: Duplex;
  connect(port: number | string, host?: string): void;
  requestSsl(): void;
  cancel(processID: number, secretKey: number): void;
}

const lineOf = pg.Connection as unknown as new (options: object) => Line;

/**
 * Asks the server to end the statement that runs on a connection. The protocol wants a line of its
 * own for that, which needs no password and no free connection. Never fails: it is a request.
 */
export function cancelStatement(client: pg.ClientBase): void {
  const session = client as unknown as Session;
  const { host, port, ssl, sslNegotiation, processID, secretKey } = session;
  if (processID === null || secretKey === null) return;
  const line = new lineOf({ ssl, sslNegotiation });
  const timer = setTimeout(() => line.stream.destroy(), PATIENCE_MS);
  const end = (): void => {
    clearTimeout(timer);
    line.stream.destroy();
  };
  const ask = (): void => line.cancel(processID, secretKey);
  line.on('error', end);
  // The server closes the line once it has told the session.
  line.on('end', end);
  line.on('connect', () => {
    if (!ssl) ask();
    else if (sslNegotiation !== 'direct') line.requestSsl();
  });
  line.on('sslconnect', ask);
  if (host.startsWith('/')) line.connect(`${host}/.s.PGSQL.${port}`);
  else line.connect(port, host);
}
