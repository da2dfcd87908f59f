import { extname, posix } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { EDITION, PAGE_FILES, sharedHead, sharedHeader } from '../reply/page.ts';
import { documentRoute } from '../reply/prepared.ts';

/** The page loads its own parts and asks its own service, and nothing else. */
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

/** The modules that a module imports at once, and those that they import. */
function importedBy(name: string, found: Set<string> = new Set()): Set<string> {
  if (found.has(name)) return found;
  found.add(name);
  const file = PAGE_FILES.find((each) => each.name === name);
  for (const [, path = ''] of file?.bytes.toString().matchAll(/ from '(\.[^']+)'/g) ?? []) {
    importedBy(posix.join(posix.dirname(name), path), found);
  }
  return found;
}

/** Modules are named in the page, or a browser would find each only in the one before. */
const preloads = (): string =>
  [...importedBy('main.js')]
    .map((name) => `<link rel="modulepreload" href="${FOLDER}/${name}">`)
    .join('\n');

const explorerPage = (): string => `<!doctype html>
<html lang="en">
<head>
${sharedHead('', 'Commodity Prices')}
<link rel="stylesheet" href="${FOLDER}/vendor/uplot.css">
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

/** `GET /explorer`, the page that shows prices, with its files; `/` leads there. */
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
      // The address names the content.
      headers: { 'cache-control': 'public, max-age=31536000, immutable' },
    });
  }
  app.get('/', {
    config: { access: 'none' },
    schema: { hide: true },
    // Relative, so that it also leads there below the prefix of a proxy.
    handler: async (_request, reply) => reply.redirect('explorer', 302),
  });
}
