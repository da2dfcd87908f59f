import t from 'tap';
import { BASE_FILTERS, DIMENSIONS } from '../../src/catalog/dimensions.ts';
import { MARKETS } from '../../src/catalog/markets.ts';
import { FORMATS } from '../../src/contract/schemas/formats.ts';
import { PROBLEMS, VIOLATIONS, WARNINGS } from '../../src/errors.ts';
import { seededDatabase } from '../support/database/database.ts';
import { serviceOn } from '../support/http/service.ts';

const service = await serviceOn(t, await seededDatabase(t));
const ask = (headers = {}) =>
  service.request({ method: 'GET', url: '/llms.txt', headers: { 'x-api-key': '', ...headers } });
const { headers, text } = await ask();

/** The words in backticks of a text. */
const wordsOf = (part: string): string[] =>
  [...part.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word);

/** The text of a section, without its heading. */
const sectionOf = (heading: string): string =>
  text.split(/^## /m).find((each) => each.startsWith(`${heading}\n`)) ?? '';

t.test('llms.txt is text of at most 8 KB, and all of it comes without a key', async (t) => {
  t.equal(headers['content-type'], 'text/plain; charset=utf-8');
  t.ok(Buffer.byteLength(text) <= 8_000, `${Buffer.byteLength(text)} bytes`);
  t.match(text, /^# Commodity Prices Service\n\n> /);
  t.notMatch(text, /undefined|\[object|NaN/);
  for (const [, link = ''] of text.matchAll(/\]\(([^)]+)\)/g)) {
    t.equal((await service.app.inject(`/${link}`)).statusCode, 200, link);
  }
});

t.test('it has each market of the catalog with its filters, and no other one', async (t) => {
  const [before = '', list = ''] = sectionOf('Markets and their filters').split('besides:');
  const lines = list.trim().split('\n').map(wordsOf);
  t.same(
    lines,
    MARKETS.map(({ slug, filters }) => [slug, ...filters]),
  );
  for (const filter of Object.keys(BASE_FILTERS)) t.ok(wordsOf(before).includes(filter), filter);
  t.same(
    [...new Set(lines.flatMap((each) => each.slice(1)))].sort(),
    Object.keys(DIMENSIONS).sort(),
  );
});

t.test('it has every error code with its status, and no other one', async (t) => {
  const section = sectionOf('Error codes');
  const listed = [...section.matchAll(/^- (\d{3}): (.*)$/gm)].flatMap(([, status, line = '']) =>
    wordsOf(line).map((code) => [code, Number(status)]),
  );
  t.same(
    listed.sort(),
    Object.entries(PROBLEMS)
      .map(([code, [status]]) => [code, status])
      .sort(),
  );
  const after = (words: string): string[] => wordsOf(section.split(words)[1]?.split('\n')[0] ?? '');
  t.same(after('Codes of `errors`:'), Object.keys(VIOLATIONS));
  t.same(after('Codes of warnings:'), Object.keys(WARNINGS));
});

t.test('it has every option of a request, and the request that it shows is legal', async (t) => {
  const answer = await service.app.inject('/openapi.json');
  const { properties } = answer.json().components.schemas.MassPriceOptions;
  const options = [...sectionOf('Options').matchAll(/^- `(\w+)`.*: \S/gm)].map(([, name]) => name);
  t.same(options.sort(), Object.keys(properties).sort());
  const [, body = ''] = /`(\{"filters".*\})`/.exec(text) ?? [];
  const { status } = await service.post(MARKETS[0].slug, JSON.parse(body.replace('{…}', '{}')));
  t.equal(status, 200);
});

t.test(
  'it has every format, and what it says of Accept, aggregate and wait is legal',
  async (t) => {
    const formats = [...sectionOf('Formats').matchAll(/`(\w+)` \(`([^`]+)`\)/g)];
    t.same(
      formats.map(([, name, media]) => [name, media]),
      Object.entries(FORMATS).map(([name, { media }]) => [name, media]),
    );
    const url = `/v3/prices/${MARKETS[0].slug}`;
    for (const [, name = '', media = ''] of formats) {
      const type = FORMATS[name as keyof typeof FORMATS].type;
      const posted = await service.request({
        method: 'POST',
        url,
        payload: {},
        headers: { accept: media },
      });
      const got = await service.request({ method: 'GET', url: `${url}?format=${name}` });
      t.same([posted.status, posted.headers['content-type']], [200, type], name);
      t.same([got.status, got.headers['content-type']], [200, type], name);
    }
    const [, aggregate = 'absent'] = /`("aggregate": \{.*\})`/.exec(text) ?? [];
    const options = { includeSeries: true, ...JSON.parse(`{${aggregate}}`) };
    t.equal((await service.post(MARKETS[0].slug, { options })).status, 200);
    const [, parameter = 'absent'] = /`(aggregate=[^`]+)`/.exec(text) ?? [];
    const query = `${url}?includeSeries=true&${parameter}`;
    t.equal((await service.request({ method: 'GET', url: query })).status, 200);
    const [, wait = 'absent'] = /`(wait=\d+)`/.exec(text) ?? [];
    t.equal((await service.request({ method: 'GET', url: `/v3/changes?${wait}` })).status, 200);
  },
);

t.test('it is tagged, and a client that has it gets a 304', async (t) => {
  const { etag = '' } = headers;
  t.match(etag, /^"[\w-]{20,}"$/, 'a strong tag');
  t.match(headers, { 'cache-control': 'private, no-cache', vary: /accept-encoding/ });
  const again = await ask({ 'if-none-match': `"other", ${etag}` });
  t.match(again, { status: 304, text: '', headers: { etag } });
  t.equal((await ask({ 'if-none-match': '"other"' })).status, 200);
});
