import type { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import pg from 'pg';

/** Timeout of the cancel request; `statement_timeout` ends a statement that it does not reach. */
const CANCEL_TIMEOUT_MS = 2_000;

/** Members of a client that the driver does not declare. */
interface DriverSession {
  readonly host: string;
  readonly port: number;
  readonly ssl: boolean | object;
  readonly sslNegotiation?: string;
  readonly processID: number | null;
  readonly secretKey: number | null;
}

/** A connection to the server without a login. */
interface CancelConnection extends EventEmitter {
  readonly stream: Duplex;
  connect(port: number | string, host?: string): void;
  requestSsl(): void;
  cancel(processID: number, secretKey: number): void;
}

const ConnectionClass = pg.Connection as unknown as new (options: object) => CancelConnection;

/**
 * Requests that the server cancels the statement running on a connection. The protocol needs a
 * separate connection for it, without a login. Never throws.
 */
export function cancelStatement(client: pg.ClientBase): void {
  const session = client as unknown as DriverSession;
  const { host, port, ssl, sslNegotiation, processID, secretKey } = session;
  if (processID === null || secretKey === null) return;
  const connection = new ConnectionClass({ ssl, sslNegotiation });
  const timer = setTimeout(() => connection.stream.destroy(), CANCEL_TIMEOUT_MS);
  const end = (): void => {
    clearTimeout(timer);
    connection.stream.destroy();
  };
  const cancel = (): void => connection.cancel(processID, secretKey);
  connection.on('error', end);
  // The server closes the connection once it has signalled the session.
  connection.on('end', end);
  connection.on('connect', () => {
    if (!ssl) cancel();
    else if (sslNegotiation !== 'direct') connection.requestSsl();
  });
  connection.on('sslconnect', cancel);
  if (host.startsWith('/')) connection.connect(`${host}/.s.PGSQL.${port}`);
  else connection.connect(port, host);
}
