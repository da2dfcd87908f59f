import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { parse } from 'yaml';
import { parseCsv, parseSemicolons } from '../prices/csv.ts';

interface CheckedAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

interface Document {
  paths: Record<string, Record<string, { responses: Record<string, unknown> }>>;
  components: { schemas: Record<string, object> };
}

/** Reads openapi.yaml. `npm test` parses it once for all processes: it costs 0.4 s of CPU. */
function readDocument(): Document {
  const parsed = process.env['TEST_OPENAPI_JSON'];
  if (parsed !== undefined) return JSON.parse(readFileSync(parsed, 'utf8'));
  return parse(readFileSync(new URL('../../../openapi.yaml', import.meta.url), 'utf8'));
}

type Schema = Readonly<Record<string, unknown>>;

/** A schema without growth: no member and no word but the documented ones. */
function closedSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closedSchema);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { 'x-extensible-enum': words, ...rest } = schema as Schema;
  const inner = Object.entries(rest).map(([name, each]) => [
    name,
    name === 'properties'
      ? Object.fromEntries(Object.entries(each as Schema).map(([n, one]) => [n, closedSchema(one)]))
      : closedSchema(each),
  ]);
  return {
    ...('properties' in rest && { additionalProperties: false }),
    ...Object.fromEntries(inner),
    ...(words !== undefined && { enum: words }),
  };
}

/**
 * The document with closed answers. Clients must ignore unknown members, so the document leaves
 * answers open; a test fails at each member that the document lacks.
 */
export function closedDocument<T extends Document>({ components, ...rest }: T) {
  const schemas = closedSchema(components.schemas) as Record<string, object>;
  return { ...rest, components: { ...components, schemas } };
}

const document = closedDocument(readDocument());
const decimals = (schema: object): object => ({
  ...document,
  components: {
    ...document.components,
    schemas: { ...document.components.schemas, Decimal: schema },
  },
});
const ajv = new Ajv2020({ strict: false, allErrors: true });
formats.default(ajv);
const [AsNumber, AsText] = (document.components.schemas['Decimal'] as { anyOf: [object, object] })
  .anyOf;
ajv.addSchema({ $id: 'openapi', ...decimals(AsNumber) });

let isTextAdded = false;

/** Adds the document for answers with decimalsAsText. */
function addTextDocument(): void {
  isTextAdded = true;
  ajv.addSchema({ $id: 'openapi-text', ...decimals(AsText) });
}

const compiled = new Map<string, ValidateFunction>();

/** Builds a JSON pointer. */
const pointer = (...parts: string[]): string =>
  parts.map((each) => `/${each.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

function validatorAt(place: string, document: 'openapi' | 'openapi-text'): ValidateFunction {
  const $ref = `${document}#${encodeURI(place)}`;
  let validate = compiled.get($ref);
  if (!validate) {
    if (document === 'openapi-text' && !isTextAdded) addTextDocument();
    validate = ajv.compile({ $ref });
    compiled.set($ref, validate);
  }
  return validate;
}

const mediaOf = ({ headers }: CheckedAnswer): string => {
  const type = String(headers['content-type'] ?? '');
  const [media = ''] = type.split(';', 1);
  return type.includes('profile=rows') ? `${media};profile=rows` : media;
};

/** The pointer to the schema of an answer; null for an undocumented answer. */
function schemaPlace(method: string, path: string, answer: CheckedAnswer): string | null {
  const type = mediaOf(answer);
  const status = String(answer.statusCode);
  const operation = document.paths[path]?.[method.toLowerCase()];
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

/** The fault of a body by the schema at a pointer; null for none. All decimals may be text. */
function faultAt(place: string, body: unknown): string | null {
  let validate: ValidateFunction;
  try {
    validate = validatorAt(place, 'openapi');
  } catch {
    return `no schema at ${place}`;
  }
  if (validate(body)) return null;
  const fault = ajv.errorsText(validate.errors);
  return validatorAt(place, 'openapi-text')(body) ? null : fault;
}

const at = (place: string): unknown =>
  place
    .split('/')
    .slice(1)
    .reduce<unknown>(
      (node, part) =>
        (node as Record<string, unknown>)[part.replaceAll('~1', '/').replaceAll('~0', '~')],
      document,
    );

/** The fault of NDJSON: lines of records, then those of warnings if the request may have them. */
function faultOfLines(place: string, mayWarn: boolean, body: string): string | null {
  if (body !== '' && !body.endsWith('\n')) return 'the last line does not end';
  const { $ref } = at(place) as { $ref: string };
  const item = `${$ref.slice(1)}/contentSchema/items`;
  const [record, warning] =
    'anyOf' in (at(item) as object) ? [`${item}/anyOf/0`, `${item}/anyOf/1`] : [item, item];
  const lines = body.split('\n').slice(0, -1);
  const first = mayWarn ? lines.findIndex((line) => line.startsWith('{"warning":')) : -1;
  const faults = lines.map((line, index) =>
    faultAt(first < 0 || index < first ? record : warning, JSON.parse(line)),
  );
  return faults.find(Boolean) ?? null;
}

const pathOf = (url: string): string => url.split('?', 1)[0] as string;

/** The fault of a body by its media type; CSV rows need equal cell counts. */
function faultOfBody(type: string, place: string, url: string, method: string, body: string) {
  if (type === 'application/x-ndjson') {
    // The options of a POST are not known here.
    const mayWarn = method === 'post' || /[?&]warnings=row(&|$)/.test(url);
    return faultOfLines(place, mayWarn, body);
  }
  if (type === 'text/plain' || type === 'text/calendar') return faultAt(place, body);
  // The bytes of a file are read by its own tests.
  if (/^application\/vnd\.(apache|openxmlformats)/.test(type)) return null;
  if (type === 'application/yaml') return faultAt(place, parse(body));
  if (type !== 'text/csv') return faultAt(place, JSON.parse(body));
  const rowsOf = /^\uFEFF?\w+;/.test(body) ? parseSemicolons : parseCsv;
  const [header = [], ...rows] = rowsOf(body);
  const odd = rows.find((row) => row.length !== header.length);
  return odd ? `a row of ${odd.length} cells: ${odd[0]}` : faultAt(place, body);
}

/**
 * The fault of an answer by the committed OpenAPI document: an undocumented status or media type, a
 * body that violates its schema, a missing request id. Null for none.
 */
export function faultOf(method: string, url: string, answer: CheckedAnswer): string | null {
  const path = pathOf(url);
  if (typeof answer.headers['x-request-id'] !== 'string') return 'no x-request-id';
  if (answer.statusCode === 204 || answer.statusCode === 304 || method === 'HEAD') return null;
  const place = schemaPlace(method, path, answer);
  if (place === null) return `${method} ${path}: ${answer.statusCode} is not documented`;
  const type = mediaOf(answer);
  const fault = faultOfBody(type, place, url, method.toLowerCase(), answer.body);
  return fault && `${method} ${path} ${answer.statusCode}: ${fault}`;
}
