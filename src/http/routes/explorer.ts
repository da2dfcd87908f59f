import { extname, posix } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { EDITION, PAGE_FILES, sharedHead, sharedHeader } from '../reply/page.ts';
import { documentRoute } from '../reply/prepared.ts';

/** The page loads files from and sends requests to this service only. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' blob:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const FOLDER = `explorer/${EDITION}`;

/** Static imports of a module, transitively. */
function importedBy(name: string, found: Set<string> = new Set()): Set<string> {
  if (found.has(name)) return found;
  found.add(name);
  const file = PAGE_FILES.find((each) => each.name === name);
  for (const [, path = ''] of file?.bytes.toString().matchAll(/ from '(\.[^']+)'/g) ?? []) {
    importedBy(posix.join(posix.dirname(name), path), found);
  }
  return found;
}

/** Preload links, so that browsers load all modules in parallel. */
const preloads = (): string =>
  [...importedBy('main.js')]
    .map((name) => `<link rel="modulepreload" href="${FOLDER}/${name}">`)
    .join('\n');

const explorerPage = (): string => `<!doctype html>
<html lang="en">
<head>
${sharedHead('', 'Commodity Prices')}
${preloads()}
<script src="${FOLDER}/vendor/uplot.js" defer></script>
<script type="module" src="${FOLDER}/main.js"></script>
</head>
<body>
${sharedHeader('', 'explorer')}
<main id="explorer">
<noscript><p class="panel">This page draws prices with JavaScript, which is off. The same prices are
at <code>/v3/prices/&lt;market&gt;?includeSeries=true&amp;format=csv</code> as a CSV file, with your
key in the header <code>x-api-key</code>. <a href="docs">The API page</a> lists the markets.</p>
</noscript>
</main>
</body>
</html>
`;

/** `GET /explorer` and its files; `/` redirects to it. */
export function explorerRoutes(app: FastifyInstance): void {
  documentRoute(app, '/explorer', {
    type: 'text/html; charset=utf-8',
    read: explorerPage,
    headers: { 'content-security-policy': POLICY },
  });
  for (const { name, bytes } of PAGE_FILES) {
    documentRoute(app, `/${FOLDER}/${name}`, {
      type: TYPES[extname(name)] ?? 'application/octet-stream',
      read: () => bytes,
      isPart: true,
      // The address contains the hash of the content.
      headers: { 'cache-control': 'public, max-age=31536000, immutable' },
    });
  }
  app.get('/', {
    config: { access: 'none' },
    schema: { hide: true },
    // Relative, because a proxy may add a path prefix.
    handler: async (_request, reply) => reply.redirect('explorer', 302),
  });
}
