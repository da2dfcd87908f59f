import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance } from 'fastify';
import { completed, descriptionOf, type RequestLimits } from '../contract/openapi.ts';
import { pathOf } from './path.ts';

/** Version of the interface, not of the software: specification, section 9. */
export const INTERFACE_VERSION = '1.0.0';

/** Where the page with the documentation is. */
export const DOCS = '/docs';

/** Makes the OpenAPI document from the routes registered after it. */
export async function openapi(app: FastifyInstance, limits: RequestLimits): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Commodity Prices Service',
        version: INTERFACE_VERSION,
        description: descriptionOf(limits),
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: '/' }],
      tags: [
        { name: 'Prices', description: 'The prices of each market' },
        { name: 'Changes', description: 'What is new, was corrected or withdrawn' },
        { name: 'Discovery', description: 'What there is, and what the caller may read' },
        { name: 'Health', description: 'Whether the service works' },
        { name: 'Documentation', description: 'This document' },
      ],
      components: {
        securitySchemes: {
          api_key: {
            type: 'apiKey',
            in: 'header',
            name: 'x-api-key',
            description: 'An API key of this service; its scopes open markets',
          },
          bearerAuth: {
            type: 'http',
            scheme: 'bearer',
            bearerFormat: 'JWT',
            description:
              'A token of the configured issuer with scopes in `scope`, `scp` or `scopes`',
          },
        },
      },
    },
    refResolver: {
      buildLocalReference: (json, _base, _fragment, index) =>
        typeof json['$id'] === 'string' ? json['$id'] : `def-${index}`,
    },
    convertConstToEnum: false,
    transformObject: (document) =>
      'openapiObject' in document ? completed(document.openapiObject) : document.swaggerObject,
  });
}

/**
 * What the page may load: its own parts, and nothing of other servers. Over plain http, as behind a
 * tunnel, none of it may be asked for by https.
 */
const policyOf = ({ script, style }: FastifyInstance['swaggerCSP']): string =>
  [
    "default-src 'self'",
    "base-uri 'self'",
    "font-src 'self' data:",
    "frame-ancestors 'self'",
    "img-src 'self' data:",
    "object-src 'none'",
    ["script-src 'self'", ...script].join(' '),
    "script-src-attr 'none'",
    ["style-src 'self'", ...style].join(' '),
  ].join('; ');

/** The page that shows the document and lets a reader try it. */
export async function docsPage(app: FastifyInstance): Promise<void> {
  await app.register(async (docs) => {
    await docs.register(swaggerUi, {
      routePrefix: DOCS,
      // The page looks for the document beside itself; there is one, at one address.
      uiHooks: {
        onRequest: (request, reply, next) => {
          const [, format] = /^\/docs\/(json|yaml)$/.exec(pathOf(request.url)) ?? [];
          // By a relative address: a proxy may serve it below another one.
          if (format) void reply.redirect(`../openapi.${format}`, 302);
          else next();
        },
      },
      uiConfig: { docExpansion: 'list', deepLinking: true, persistAuthorization: false },
      theme: {
        title: 'Commodity Prices Service',
        // The bar above the page offers to load other documents; this page has one.
        css: [{ filename: 'theme.css', content: '.swagger-ui .topbar { display: none }' }],
      },
    });
    const policy = policyOf(docs.swaggerCSP);
    docs.addHook('onSend', (_request, reply, payload, done) => {
      // The plugin itself would put it on scripts, styles and documents too.
      const isPage = String(reply.getHeader('content-type')).startsWith('text/html');
      if (isPage) reply.header('content-security-policy', policy);
      done(null, payload);
    });
  });
}
