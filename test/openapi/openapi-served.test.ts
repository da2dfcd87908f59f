import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import type { FastifyInstance } from 'fastify';
import t from 'tap';
import { parse } from 'yaml';
import { PROBLEMS, VIOLATIONS } from '../../src/errors.ts';
import { openapiYaml, yamlOf } from '../../src/http/routes/documents.ts';
import { testDatabase } from '../support/database/database.ts';
import { serviceOn } from '../support/http/service.ts';

const document = parse(await readFile(new URL('../../openapi.yaml', import.meta.url), 'utf8'));

const UI = '@fastify/swagger-ui';
const DECODERS = { br: brotliDecompressSync, gzip: gunzipSync, zstd: zstdDecompressSync };

t.test('the document and its page are served to anyone, and asked for once', async (t) => {
  const service = await serviceOn(t, await testDatabase(t));
  const get = (url: string, headers = {}) => service.app.inject({ url, headers });
  for (const [url, type, read] of [
    ['/openapi.json', 'application/json; charset=utf-8', (text: string) => JSON.parse(text)],
    ['/openapi.yaml', 'application/yaml; charset=utf-8', (text: string) => parse(text)],
  ] as const) {
    const answer = await get(url);
    t.match(answer, { statusCode: 200, headers: { 'content-type': type } });
    t.same(read(answer.body), document, url);
    const tag = answer.headers.etag as string;
    t.match(tag, /^"[\w-]{20,}"$/, 'a strong tag');
    t.match(answer.headers, { 'cache-control': 'private, no-cache', 'x-request-id': /./ });
    const again = await get(url, { 'if-none-match': `"other", ${tag}` });
    t.match(again, { statusCode: 304, body: '', headers: { etag: tag, 'x-request-id': /./ } });
    t.equal((await get(url, { 'if-none-match': '"other"' })).statusCode, 200);
  }
  const [json, yaml] = await Promise.all([get('/openapi.json'), get('/openapi.yaml')]);
  t.not(json.headers.etag, yaml.headers.etag);
});

t.test('every limit of the contract is in the document', async (t) => {
  const names = [
    ...['JSON_DEPTH_MAX', 'URL_BYTES_MAX', 'CODES_MAX', 'LIST_ITEMS_MAX', 'ITEM_LENGTH_MAX'],
    ...['RECORDS_MAX', 'WIDE_CELLS_MAX'],
    ...['CHANGES_LIMIT', 'CHANGES_LIMIT_MAX', 'CHANGES_WAIT_MAX_SECONDS'],
  ];
  // Numbers that nothing else in the document has.
  const limits = Object.fromEntries(names.map((name, at) => [name, 1_234_501 + at]));
  const service = await serviceOn(t, await testDatabase(t), limits);
  const { body } = await service.app.inject('/openapi.json');
  for (const [name, limit] of Object.entries(limits)) t.ok(body.includes(String(limit)), name);
});

t.test('others are answered while the document is written', async (t) => {
  const service = await serviceOn(t, await testDatabase(t));
  await service.app.ready();
  let [turns, isWritten] = [0, false];
  const count = (): void => {
    turns += 1;
    if (!isWritten) setImmediate(count);
  };
  setImmediate(count);
  await service.app.inject({ url: '/openapi.yaml' });
  isWritten = true;
  t.ok(turns > 100, `${turns} turns of the event loop`);
});

t.test('written part by part it is what it is as a whole', async (t) => {
  const odd = {
    info: { title: 'a', none: undefined },
    paths: { '/a': { get: { schemas: { x: [1, '2026-03-05'] } } }, '/b': {} },
    components: { schemas: { A: { type: 'object', text: `${'long '.repeat(40)}\nlines` } }, b: [] },
    gone: undefined,
    schemas: {},
  };
  for (const document of [odd, { paths: {} }, { components: { schemas: {} } }]) {
    const app = { swagger: () => document } as unknown as FastifyInstance;
    t.equal(await openapiYaml(app), yamlOf(document));
  }
});

t.test('the page finds the document at the one address that it has', async (t) => {
  const service = await serviceOn(t, await testDatabase(t));
  for (const format of ['json', 'yaml']) {
    const answer = await service.app.inject({ url: `/docs/${format}?a` });
    t.match(answer, { statusCode: 302, headers: { location: `../openapi.${format}` } });
  }
});

t.test('the page and all that it loads come from this service', async (t) => {
  const service = await serviceOn(t, await testDatabase(t));
  const page = await service.app.inject({ url: '/docs' });
  t.match(page, { statusCode: 200, headers: { 'content-type': /^text\/html/ } });
  const links = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => link ?? '');
  t.ok(links.length > 3);
  for (const link of links) {
    t.notMatch(link, /^(https?:)?\/\//, 'nothing is loaded from elsewhere');
    const { pathname } = new URL(link, 'http://service/docs');
    t.equal((await service.app.inject({ url: pathname })).statusCode, 200, pathname);
  }
});

t.test('each part of the page has a strong tag, a length and its codings', async (t) => {
  const service = await serviceOn(t, await testDatabase(t));
  const files = await readdir(fileURLToPath(new URL('static/', import.meta.resolve(UI))));
  const parts = files.filter((name) => name !== 'index.html').map((name) => `static/${name}`);
  t.ok(parts.length > 8);
  const own = ['', 'problems', 'static/theme/theme.css', 'static/swagger-initializer.js'];
  const tags = new Set<unknown>();
  for (const part of [...parts, ...own]) {
    const url = `/docs/${part}`;
    const whole = await service.app.inject({ url });
    t.equal(whole.statusCode, 200, url);
    const length = String(whole.rawPayload.length);
    t.equal(whole.headers['content-length'], length, url);
    const head = await service.app.inject({ method: 'HEAD', url });
    t.match(head, { statusCode: 200, body: '', headers: { 'content-length': length } }, url);
    for (const [coding, decode] of Object.entries(DECODERS)) {
      const headers = { 'accept-encoding': coding };
      const coded = await service.app.inject({ url, headers });
      t.equal(coded.headers['content-encoding'], coding, url);
      t.same(decode(coded.rawPayload), whole.rawPayload, url);
      const { etag } = coded.headers;
      tags.add(etag);
      const again = { ...headers, 'if-none-match': etag as string };
      const known = await service.app.inject({ url, headers: again });
      t.match(known, { statusCode: 304, body: '', headers: { etag } }, url);
    }
    tags.add(whole.headers.etag);
  }
  t.ok(tags.size > 2 * parts.length, 'each coding has a tag of its own');
});

t.test('the bare address leads to the explorer', async (t) => {
  const service = await serviceOn(t, await testDatabase(t));
  const answer = await service.app.inject({ url: '/' });
  t.match(answer, { statusCode: 302, headers: { location: 'explorer' } });
});

t.test('the type of a problem is an address that explains its code', async (t) => {
  const service = await serviceOn(t, await testDatabase(t));
  const { json } = await service.request({ method: 'GET', url: '/nowhere' });
  const page = await service.app.inject({ url: json.type.split('#')[0] });
  t.match(page, { statusCode: 200, headers: { 'content-type': /^text\/html/ } });
  for (const code of [...Object.keys(PROBLEMS), ...Object.keys(VIOLATIONS)]) {
    t.ok(page.body.includes(`id="${code}"`), code);
  }
  t.equal(json.type, '/docs/problems#not_found');
});
