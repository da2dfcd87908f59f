import { setImmediate as immediate } from 'node:timers/promises';
import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import { stringify } from 'yaml';
import { llmsText } from '../../contract/llms.ts';
import { completed, descriptionOf, type RequestLimits } from '../../contract/openapi/openapi.ts';
import { PROBLEMS, VIOLATIONS, WARNINGS } from '../../errors.ts';
import { VERSION } from '../../std/program.ts';
import { PROSE_HEADERS, prosePage } from '../reply/page.ts';
import { documentRoute } from '../reply/prepared.ts';
import { documentOperation, llmsOperation, NOT_MODIFIED, type Operation } from './operations.ts';

/**
 * Makes the OpenAPI document from the routes registered after it.
 * @param publicUrl absolute address of the service; many generators and tools need one
 */
export async function openapi(
  app: FastifyInstance,
  limits: RequestLimits,
  publicUrl: string,
): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Commodity Prices Service',
        version: VERSION,
        description: descriptionOf(limits),
        license: { name: 'MIT', identifier: 'MIT' },
      },
      // A setting, since the address of a request is chosen by its sender.
      servers: [{ url: publicUrl }],
      tags: [
        { name: 'Prices', description: 'The prices of each market; responses are never truncated' },
        { name: 'Changes', description: 'New, corrected and withdrawn points, as a feed' },
        { name: 'Discovery', description: 'Markets, reference data, search, and your credential' },
        { name: 'Health', description: 'Health, readiness and liveness of the service' },
        { name: 'Documentation', description: 'This document' },
      ],
      components: {
        securitySchemes: {
          api_key: {
            type: 'apiKey',
            in: 'header',
            name: 'x-api-key',
            description: 'An API key of this service; its scopes grant access to markets',
          },
          calendar_token: {
            type: 'apiKey',
            in: 'query',
            name: 'token',
            description: 'A calendar token: an API key that opens GET /v3/calendar alone',
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

const row = (code: string, texts: readonly string[], id: string = code): string => {
  const cells = texts.map((each) => `<td>${each}</td>`).join('');
  return `<tr id="${id}"><th scope="row"><code>${code}</code></th>${cells}</tr>`;
};

const headings = (...names: readonly string[]): string =>
  `<tr>${names.map((name) => `<th scope="col">${name}</th>`).join('')}</tr>`;

/** The page of error codes. The `type` of every problem links to it. */
const problemsPage = (): string =>
  prosePage(
    'Error codes',
    'docs/problems',
    `<h1>Error codes</h1>
<p>Every refusal is <code>application/problem+json</code>; its <code>code</code> never changes its
meaning. <code>detail</code> says what to do instead.</p>
<table>
<thead>${headings('Code', 'Status', 'Meaning')}</thead>
<tbody>
${Object.entries(PROBLEMS)
  .map(([code, [status, title]]) => row(code, [String(status), title]))
  .join('\n')}
</tbody>
</table>
<h2>Codes of single places, in <code>errors</code></h2>
<p>A request that breaks rules is refused as <code>validation_failed</code>, and <code>errors</code>
names each place with one of these codes. Two of them are also the <code>code</code> of the refusal:
<code>unknown_revision</code> and <code>invalid_cursor</code>. The client then discards its
revision, feed position or cursor and starts again; <code>errors</code> names the one place. A
request that breaks other rules too is refused as <code>validation_failed</code> first.</p>
<table>
<thead>${headings('Code', 'Meaning')}</thead>
<tbody>
${Object.entries(VIOLATIONS)
  .map(([code, text]) => row(code, [text], code in PROBLEMS ? `errors-${code}` : code))
  .join('\n')}
</tbody>
</table>
<h2>Codes of warnings, in <code>$metadata.warnings</code> of an answer</h2>
<table>
<thead>${headings('Code', 'Meaning')}</thead>
<tbody>
${Object.entries(WARNINGS)
  .map(([code, text]) => row(code, [text], `warning-${code}`))
  .join('\n')}
</tbody>
</table>`,
  );

/** The largest members of the document. */
const LARGE = ['paths', 'schemas'];

/** The YAML notation of the document. */
export const yamlOf = (value: object): string =>
  stringify(value, {
    lineWidth: 100,
    aliasDuplicateObjects: false,
    blockQuote: 'literal',
    // YAML 1.1 parsers read an unquoted 2026-03-05 as a date.
    compat: 'yaml-1.1',
  });

/** YAML of a part of the document, indented for its parent members but without their lines. */
function partOf(value: object, around: readonly string[]): string {
  const whole = around.reduceRight<object>((inner, name) => ({ [name]: inner }), value);
  return yamlOf(whole).split('\n').slice(around.length).join('\n');
}

/** YAML of an object, member by member. Large members are split into their own members. */
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
 * The OpenAPI document as YAML text. It yields to the event loop between parts, because writing
 * the whole document takes up to half a second before the code is optimized.
 */
export async function openapiYaml(app: FastifyInstance): Promise<string> {
  const parts: string[] = [];
  for (const part of partsOf(app.swagger())) {
    parts.push(part);
    await immediate();
  }
  return parts.join('');
}

/** The OpenAPI document, its summary for language models and the page of error codes. */
export function documentRoutes(app: FastifyInstance): void {
  const documentOf = (operation: Operation, media: string, type: string) => ({
    ...operation,
    response: {
      200: { description: 'The document', content: { [media]: { schema: { type } } } },
      ...NOT_MODIFIED,
    },
  });
  const schemaOf = (operationId: string, format: string, media: string) =>
    documentOf(documentOperation(operationId, format), media, 'object');
  documentRoute(
    app,
    '/openapi.json',
    { type: 'application/json; charset=utf-8', read: () => JSON.stringify(app.swagger()) },
    schemaOf('openapiJson', 'JSON', 'application/json'),
  );
  documentRoute(
    app,
    '/openapi.yaml',
    { type: 'application/yaml; charset=utf-8', read: () => openapiYaml(app) },
    schemaOf('openapiYaml', 'YAML', 'application/yaml'),
  );
  documentRoute(
    app,
    '/llms.txt',
    { type: 'text/plain; charset=utf-8', read: llmsText },
    documentOf(llmsOperation, 'text/plain', 'string'),
  );
  documentRoute(app, '/docs/problems', {
    type: 'text/html; charset=utf-8',
    read: problemsPage,
    headers: PROSE_HEADERS,
  });
}
