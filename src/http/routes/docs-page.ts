import { readdir, readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import { sharedHead, sharedHeader } from '../reply/page.ts';
import { documentRoute } from '../reply/prepared.ts';

/** Folder of Swagger UI in @fastify/swagger-ui. */
const ASSETS = fileURLToPath(new URL('static/', import.meta.resolve('@fastify/swagger-ui')));

const HTML = 'text/html; charset=utf-8';

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': HTML,
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
};

/**
 * The page loads only files of this service. Without `upgrade-insecure-requests` it also works over
 * plain HTTP.
 */
const POLICY = [
  "default-src 'self'",
  "base-uri 'self'",
  "font-src 'self' data:",
  "frame-ancestors 'self'",
  "img-src 'self' data:",
  "object-src 'none'",
  "script-src 'self'",
  "script-src-attr 'none'",
  "style-src 'self'",
].join('; ');

/** Hides the bar of Swagger UI, which would load other documents. */
const THEME = `.swagger-ui .topbar { display: none }
.swagger-ui, .swagger-ui .info .title, .swagger-ui .opblock-tag { font-family: inherit }
.swagger-ui .info { margin: 24px 0 }
.swagger-ui .info .title { font-size: 24px }
.swagger-ui .info .title small { top: 0 }
`;

/**
 * @param base relative address of the assets: a proxy may add a path prefix
 * @param service relative address of the service
 */
const pageOf = (base: string, service: string): string => `<!DOCTYPE html>
<html lang="en">
<head>
${sharedHead(service, 'API: Commodity Prices')}
<link rel="stylesheet" type="text/css" href="${base}/swagger-ui.css">
<link rel="stylesheet" type="text/css" href="${base}/theme/theme.css">
</head>
<body>
${sharedHeader(service, 'docs')}
<div id="swagger-ui"></div>
<script src="${base}/swagger-ui-bundle.js" charset="UTF-8"></script>
<script src="${base}/swagger-ui-standalone-preset.js" charset="UTF-8"></script>
<script src="${base}/swagger-initializer.js" charset="UTF-8"></script>
</body>
</html>
`;

/** Redirects to a relative address, because a proxy may add a path prefix. */
function redirect(app: FastifyInstance, url: string, location: string): void {
  app.get(url, {
    config: { access: 'none' },
    schema: { hide: true },
    handler: async (_request, reply) => reply.redirect(location, 302),
  });
}

/**
 * Adds the API page with Swagger UI. Its files are served from memory: the plugin of
 * @fastify/swagger-ui would open a file for each request.
 */
export async function docsPage(app: FastifyInstance): Promise<void> {
  const asset = (url: string, read: () => string | Promise<Buffer>): void => {
    const type = TYPES[extname(url)] ?? HTML;
    const headers = type === HTML ? { 'content-security-policy': POLICY } : {};
    documentRoute(app, url, { type, read, headers });
  };
  asset('/docs', () => pageOf('docs/static', ''));
  asset('/docs/', () => pageOf('static', '../'));
  redirect(app, '/docs/json', '../openapi.json');
  redirect(app, '/docs/yaml', '../openapi.yaml');
  redirect(app, '/docs/static/index.html', '../');
  asset('/docs/static/theme/theme.css', () => THEME);
  asset('/docs/static/swagger-initializer.js', () =>
    readFile(new URL('swagger-initializer.js', import.meta.url)),
  );
  for (const name of await readdir(ASSETS)) {
    if (name !== 'index.html') asset(`/docs/static/${name}`, () => readFile(`${ASSETS}${name}`));
  }
}
