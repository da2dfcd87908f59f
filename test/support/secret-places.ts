import type t from 'tap';
import { Caller, exchange, type Listening, until } from './sockets.ts';

type Test = Pick<typeof t, 'teardown'>;

const HEAD = 'Host: test\r\nConnection: close\r\n';

/** Places of a request that somebody may put a secret into, right ones and wrong ones. */
const placesOf = (secret: string): string[] => [
  `GET /v3/prices HTTP/1.1\r\n${HEAD}x-api-key: ${secret}\r\n\r\n`,
  `GET /v3/prices HTTP/1.1\r\n${HEAD}Authorization: Bearer ${secret}\r\n\r\n`,
  `GET /v3/prices HTTP/1.1\r\n${HEAD}Authorization: Basic ${secret}\r\n\r\n`,
  `GET /v3/prices HTTP/1.1\r\n${HEAD}Authorization: ${secret}\r\n\r\n`,
  `GET /v3/prices HTTP/1.1\r\n${HEAD}x-api-key: ${secret}\r\n` +
    `Authorization: Bearer ${secret}\r\n\r\n`,
  `GET /v3/prices HTTP/1.1\r\n${HEAD}Cookie: key=${secret}\r\nAccept: ${secret}\r\n\r\n`,
  `GET /v3/prices?x-api-key=${secret}&access_token=${secret} HTTP/1.1\r\n${HEAD}\r\n`,
  `GET /live?key=${secret}#${secret} HTTP/1.1\r\n${HEAD}\r\n`,
  `GET /v3/prices HTTP/1.1\r\n${HEAD}x-request-id: ${secret}\r\n\r\n`,
  `GET /v3/prices/${secret} HTTP/1.1\r\n${HEAD}\r\n`,
  `GET /${secret}/v3/prices/%zz HTTP/1.1\r\n${HEAD}\r\n`,
  `GET http://user:${secret}@test/v3/prices HTTP/1.1\r\n${HEAD}\r\n`,
  `GET http://${secret}@test/nowhere HTTP/1.1\r\n${HEAD}\r\n`,
  `${secret} /live HTTP/1.1\r\n${HEAD}\r\n`,
  `GET /live ${secret}\r\n${HEAD}\r\n`,
  `GET /live HTTP/1.1\r\n${HEAD}x-api-key: ${secret}\u0001\r\n\r\n`,
  `GET /live HTTP/1.1\r\n${HEAD}x-api-key: ${secret}${'a'.repeat(20_000)}\r\n\r\n`,
  `GET /live?${secret}${'a'.repeat(9_000)} HTTP/1.1\r\n${HEAD}\r\n`,
  `CONNECT ${secret}:443 HTTP/1.1\r\nHost: ${secret}\r\n\r\n`,
  `POST /v3/prices/nickel HTTP/1.1\r\n${HEAD}x-api-key: ${secret}\r\n` +
    `Content-Type: application/json\r\nContent-Length: 9000\r\n\r\n{"filters":{"${secret}":1`,
  `GET /live HTTP/1.1\r\nHost: test\r\nx-api-key: ${secret}\r\n`,
];

/** A request that is answered, whose body has the secret where a filter should be. */
export const bodyOf = (secret: string, key: string): string => {
  const json = JSON.stringify({ filters: { [secret]: [secret], regions: [secret] } });
  return (
    `POST /v3/prices/nickel HTTP/1.1\r\n${HEAD}x-api-key: ${key}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n${json}`
  );
};

/** Sends a secret in every place of a request, and somebody who leaves in the midst of one. */
export async function sendEverywhere(
  t: Test,
  service: Pick<Listening, 'port' | 'key'>,
  secret: string,
) {
  const { port, key } = service;
  await Promise.all(
    [...placesOf(secret), bodyOf(secret, key)].map((text) => exchange(t, port, text)),
  );
  const leaver = new Caller(t, port);
  leaver.socket.write(bodyOf(secret, key).slice(0, -5));
  await until('it was sent', () => leaver.socket.bytesWritten > 0);
  leaver.socket.destroy();
}
