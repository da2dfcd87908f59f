import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import { completed, descriptionOf, type RequestLimits } from '../contract/openapi.ts';

/** Version of the interface, not of the software: specification, section 9. */
const INTERFACE_VERSION = '1.0.0';

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
