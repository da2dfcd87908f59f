import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { parse } from 'yaml';

interface Answer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

interface Document {
  paths: Record<string, Record<string, { responses: Record<string, unknown> }>>;
}

const document: Document = parse(
  readFileSync(new URL('../../openapi.yaml', import.meta.url), 'utf8'),
);
const ajv = new Ajv2020({ strict: false, allErrors: true });
formats.default(ajv);
ajv.addSchema({ $id: 'openapi', ...document });

const compiled = new Map<string, ValidateFunction>();

/** JSON pointer of a place in the document. */
const pointer = (...parts: string[]): string =>
  parts.map((each) => `/${each.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

function validatorAt(place: string): ValidateFunction {
  let validate = compiled.get(place);
  if (!validate) {
    validate = ajv.compile({ $ref: `openapi#${encodeURI(place)}` });
    compiled.set(place, validate);
  }
  return validate;
}

/** Where the schema of an answer is; null when the document does not know the answer. */
function schemaPlace(method: string, path: string, answer: Answer): string | null {
  const type = String(answer.headers['content-type'] ?? '').split(';', 1)[0] as string;
  const status = String(answer.statusCode);
  const operation =
    document.paths[path]?.[method.toLowerCase() === 'head' ? 'get' : method.toLowerCase()];
  if (!operation) {
    return ['404', '405'].includes(status) ? pointer('components', 'schemas', 'Problem') : null;
  }
  const response = operation.responses[status] as { $ref?: string; content?: object } | undefined;
  if (!response) return null;
  const base = response.$ref
    ? response.$ref.slice(1)
    : pointer('paths', path, method.toLowerCase(), 'responses', status);
  return `${base}${pointer('content', type, 'schema')}`;
}

/**
 * What is wrong with an answer by the committed OpenAPI document: an undocumented status or media
 * type, a body against its schema, a missing request id. Null when nothing is.
 */
export function faultOf(method: string, url: string, answer: Answer): string | null {
  const path = url.split('?', 1)[0] as string;
  if (typeof answer.headers['x-request-id'] !== 'string') return 'no x-request-id';
  if (answer.statusCode === 204 || answer.statusCode === 304 || method === 'HEAD') return null;
  const place = schemaPlace(method, path, answer);
  if (place === null) return `${method} ${path}: ${answer.statusCode} is not documented`;
  let validate: ValidateFunction;
  try {
    validate = validatorAt(place);
  } catch {
    return `${method} ${path}: no schema at ${place}`;
  }
  if (validate(JSON.parse(answer.body))) return null;
  return `${method} ${path} ${answer.statusCode}: ${ajv.errorsText(validate.errors)}`;
}
