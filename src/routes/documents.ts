import type { FastifyInstance } from 'fastify';
import { stringify } from 'yaml';
import { problemsPage } from '../contract/problems-page.ts';
import { sendTagged } from './etag.ts';
import { documentOperation, NOT_MODIFIED } from './operations.ts';

/** The OpenAPI document as YAML text. */
export const openapiYaml = (app: FastifyInstance): string =>
  stringify(app.swagger(), {
    lineWidth: 100,
    aliasDuplicateObjects: false,
    blockQuote: 'literal',
    // Older readers take a bare 2026-03-05 for a date.
    compat: 'yaml-1.1',
  });

/** The OpenAPI document, the page of error codes and the way to them, open to anyone. */
export function documentRoutes(app: FastifyInstance): void {
  // The document is made once: it cannot change while the process runs.
  let json: string | undefined;
  let yaml: string | undefined;
  const access = 'none';
  const response = (type: string) => ({
    200: { description: 'The document', content: { [type]: { schema: { type: 'object' } } } },
    ...NOT_MODIFIED,
  });
  app.get('/openapi.json', {
    config: { access },
    schema: { ...documentOperation('openapiJson', 'JSON'), response: response('application/json') },
    handler: async (request, reply) => {
      json ??= JSON.stringify(app.swagger());
      return sendTagged(request, reply, 'application/json; charset=utf-8', json);
    },
  });
  app.get('/openapi.yaml', {
    config: { access },
    schema: { ...documentOperation('openapiYaml', 'YAML'), response: response('application/yaml') },
    handler: async (request, reply) => {
      yaml ??= openapiYaml(app);
      return sendTagged(request, reply, 'application/yaml; charset=utf-8', yaml);
    },
  });
  // Whoever opens the bare address in a browser looks for what there is.
  app.get('/', {
    config: { access },
    schema: { hide: true },
    handler: async (_request, reply) => reply.redirect('/docs', 302),
  });
  app.get('/docs/problems', {
    config: { access },
    schema: { hide: true },
    handler: async (request, reply) => {
      reply.header('content-security-policy', "default-src 'none'; frame-ancestors 'self'");
      return sendTagged(request, reply, 'text/html; charset=utf-8', problemsPage());
    },
  });
}
