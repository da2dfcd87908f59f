import t from 'tap';
import { serviceWithoutDatabase } from '../../support/http/service-without-database.ts';

let service: Awaited<ReturnType<typeof serviceWithoutDatabase>>;
t.before(async () => {
  service = await serviceWithoutDatabase(t);
});

t.test('a body that is not said to be JSON is refused', async (t) => {
  for (const type of [
    'text/plain',
    'text/json',
    'application/xml',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'application/json-patch+json',
    'application/problem+json',
    'application/x-ndjson',
    'application/json, text/plain',
    'application/',
    'json',
    'no type at all',
    '*/*',
  ]) {
    const { status, json } = await service.send('{}', { 'content-type': type });
    t.same([status, json.code], [415, 'unsupported_media_type'], type);
    t.match(json.detail, 'application/json', type);
  }
});

t.test('a body without any type is refused, however good it is', async (t) => {
  const { status, json } = await service.request({
    method: 'POST',
    url: '/v3/prices/nickel',
    payload: Buffer.from('{}'),
  });
  t.same([status, json.code], [415, 'unsupported_media_type']);
});

t.test('a body in another encoding of letters is refused', async (t) => {
  for (const charset of [
    'iso-8859-1',
    'utf-16',
    'UTF-16LE',
    '"latin1"',
    'us-ascii',
    'utf-7',
    'x',
  ]) {
    const type = `application/json; charset=${charset}`;
    const { status, json } = await service.send('{}', { 'content-type': type });
    t.same([status, json.code], [415, 'unsupported_media_type'], charset);
    t.match(json.detail, 'UTF-8');
  }
});

t.test('a compressed body is refused', async (t) => {
  for (const encoding of ['gzip', 'br', 'zstd', 'deflate', 'identity, gzip', 'GZIP', 'x']) {
    const { status, json } = await service.send('{}', { 'content-encoding': encoding });
    t.same([status, json.code], [415, 'unsupported_media_type'], encoding);
    t.match(json.detail, 'uncompressed');
  }
});
