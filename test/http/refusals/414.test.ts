import t from 'tap';
import { serviceWithoutDatabase } from '../../support/http/service-without-database.ts';

const LIMIT = 8_192;

let service: Awaited<ReturnType<typeof serviceWithoutDatabase>>;
t.before(async () => {
  service = await serviceWithoutDatabase(t);
});

/** An address of some bytes, with a query. */
const address = (path: string, bytes: number): string =>
  `${path}?${'x'.repeat(bytes - path.length - 1)}`;

t.test('an address of 8 KiB is read, one byte more is refused with the way out', async (t) => {
  const path = '/v3/prices';
  const get = (url: string) => service.request({ method: 'GET', url });
  const read = await get(address(path, LIMIT));
  t.same([read.status, read.json.errors[0].code], [400, 'unknown_field'], 'its query is read');
  const { status, json } = await get(address(path, LIMIT + 1));
  t.same([status, json.code], [414, 'uri_too_long']);
  t.match(json.detail, 'POST');
  t.equal(json.instance, path);
});

t.test('a refusal repeats at most 64 characters of a long address', async (t) => {
  for (const url of [
    `/${'x'.repeat(300)}`,
    `/${'x'.repeat(9_000)}`,
    `/v3/prices/${'%F0'.repeat(99)}`,
  ]) {
    const answer = await service.app.inject({ method: 'POST', url });
    t.ok(answer.statusCode >= 400 && answer.statusCode < 500);
    t.ok(answer.json().instance.length <= 64, url.slice(0, 20));
    t.notMatch(answer.body, url.slice(0, 65));
  }
});
