import type t from 'tap';
import { exchange, type ListeningService, RawConnection, until } from '../http/sockets.ts';

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
  `GET /v3/prices/${secret.replaceAll('_', '%5f')} HTTP/1.1\r\n${HEAD}\r\n`,
  `GET /v3/prices/${secret.replaceAll('_', '%25255f')} HTTP/1.1\r\n${HEAD}\r\n`,
  `GET /v3/prices/${secret.replace(/(?<=^cps_live_)/, '%')} HTTP/1.1\r\n${HEAD}\r\n`,
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

const posted = (body: object, key: string): string => {
  const json = JSON.stringify(body);
  return (
    `POST /v3/prices/nickel HTTP/1.1\r\n${HEAD}x-api-key: ${key}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n${json}`
  );
};

/** A request that is answered, whose body has the secret where a filter should be. */
export const bodyOf = (secret: string, key: string): string =>
  posted({ filters: { [secret]: [secret], regions: [secret] } }, key);

const got = (address: string, key: string): string =>
  `GET ${address} HTTP/1.1\r\n${HEAD}x-api-key: ${key}\r\n\r\n`;

/** Requests that have a secret as the value of a filter, which is a parameter of a statement. */
export const filtersWith = (secret: string, key: string): string[] => [
  posted({ filters: { regions: [secret] } }, key),
  posted({ filters: { codes: [`x ${secret}`] }, options: { asOf: '2026-11-01T00:00:00Z' } }, key),
  got(`/v3/prices/nickel?regions=${secret}`, key),
  got(`/v3/prices/nickel?regions=Europe&regions=${secret}&limit=1`, key),
];

/** Requests with a good key that have a secret where a value or a name belongs. */
const requestsWith = (secret: string, key: string): string[] => [
  bodyOf(secret, key),
  posted({ options: { [secret]: true } }, key),
  posted({ options: { currency: secret, unitOfMeasure: secret, cursor: secret } }, key),
  got(`/v3/prices/nickel?${secret}=1`, key),
  got(`/v3/prices/nickel?includeSeries=${secret}`, key),
  got(`/v3/prices/nickel/filters?${secret}`, key),
  got(`/v3/reference/rates?base=${secret}`, key),
  got(`/v3/search?q=${secret}&limit=${secret}`, key),
  got(`/v3/changes?market=${secret}&after=${secret}`, key),
  got(`/v3/calendar?codes=${secret}&token=${secret}`, key),
  got(`/v3/me?${secret}`, key),
  got(`/v3/me?${secret.replaceAll('_', '%5f')}%zz=1`, key),
  got(`/v3/me?%FF${secret}=1`, key),
  got(`/v3/x%FF${secret}`, key),
  got(`/v3/Bearer_${secret}`, key),
  posted(
    { filters: { regions: [`Bearer_${secret}`] }, options: { asOf: 'x', limit: secret } },
    key,
  ),
];

/**
 * Sends a secret in every place of a request but the value of a filter, and once in a request that
 * is aborted.
 * @returns the answers, as text
 */
export async function sendEverywhere(
  t: Test,
  service: Pick<ListeningService, 'port' | 'key'>,
  secret: string,
): Promise<string[]> {
  const { port, key } = service;
  const answers = await Promise.all(
    [...placesOf(secret), ...requestsWith(secret, key)].map((text) => exchange(t, port, text)),
  );
  const disconnecting = new RawConnection(t, port);
  disconnecting.socket.write(bodyOf(secret, key).slice(0, -5));
  await until('the body was sent', () => disconnecting.socket.bytesWritten > 0);
  disconnecting.socket.destroy();
  return answers.map((each) => JSON.stringify(each));
}

/** The part of a secret that is in a text, in capital or small letters; null where none is. */
export const heldOf = (secrets: readonly string[], text: string): string | null =>
  // A key begins with its public id, which may be shown; a token has a signature at its end.
  secrets.find((each) => text.toLowerCase().includes(each.slice(-30).toLowerCase())) ?? null;
