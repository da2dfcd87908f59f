import { setImmediate as immediate } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { stringify } from 'yaml';
import { problemsPage } from '../contract/problems-page.ts';
import { documentOperation, NOT_MODIFIED } from './operations.ts';
import { prepared } from './prepared.ts';

/** Members of the document that hold most of it. */
const LARGE = ['paths', 'schemas'];

/** A value as YAML, as the document is written. */
export const yamlOf = (value: object): string =>
  stringify(value, {
    lineWidth: 100,
    aliasDuplicateObjects: false,
    blockQuote: 'literal',
    // Older readers take a bare 2026-03-05 for a date.
    compat: 'yaml-1.1',
  });

/** A part of a document within the members around it, without the lines of these. */
function partOf(value: object, around: readonly string[]): string {
  const whole = around.reduceRight<object>((inner, name) => ({ [name]: inner }), value);
  return yamlOf(whole).split('\n').slice(around.length).join('\n');
}

/** The texts of an object's members in turn; those that are large go by their own members. */
function* partsOf(value: object, around: readonly string[] = []): Generator<string> {
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const isLarge = LARGE.some((each) => each === name || Object.hasOwn(Object(member), each));
    if (isLarge && Object.keys(Object(member)).length > 0) {
      yield `${'  '.repeat(around.length)}${name}:\n`;
      yield* partsOf(member, [...around, name]);
    } else yield partOf({ [name]: member }, around);
  }
}

/**
 * The OpenAPI document as YAML text. It is written part by part, so that others are answered
 * meanwhile: all of it at once takes half a second where nothing is compiled yet.
 */
export async function openapiYaml(app: FastifyInstance): Promise<string> {
  const parts: string[] = [];
  for (const part of partsOf(app.swagger())) {
    parts.push(part);
    await immediate();
  }
  return parts.join('');
}

/** The OpenAPI document, the page of error codes and the way to them, open to anyone. */
export function documentRoutes(app: FastifyInstance): void {
  const schemaOf = (operationId: string, format: string, type: string) => ({
    ...documentOperation(operationId, format),
    response: {
      200: { description: 'The document', content: { [type]: { schema: { type: 'object' } } } },
      ...NOT_MODIFIED,
    },
  });
  prepared(
    app,
    '/openapi.json',
    { type: 'application/json; charset=utf-8', read: () => JSON.stringify(app.swagger()) },
    schemaOf('openapiJson', 'JSON', 'application/json'),
  );
  prepared(
    app,
    '/openapi.yaml',
    { type: 'application/yaml; charset=utf-8', read: () => openapiYaml(app) },
    schemaOf('openapiYaml', 'YAML', 'application/yaml'),
  );
  // Whoever opens the bare address in a browser looks for what there is.
  app.get('/', {
    config: { access: 'none' },
    schema: { hide: true },
    handler: async (_request, reply) => reply.redirect('/docs', 302),
  });
  prepared(app, '/docs/problems', {
    type: 'text/html; charset=utf-8',
    read: problemsPage,
    headers: { 'content-security-policy': "default-src 'none'; frame-ancestors 'self'" },
  });
}
