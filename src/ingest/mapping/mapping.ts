import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { TSchema } from 'typebox';
import { Settings } from 'typebox/system';
import Value from 'typebox/value';
import { nearest } from '../../catalog/nearest.ts';
import { quoted } from '../../errors.ts';
import { EXIT, ExpectedError } from '../../std/base-errors.ts';
import { checkMapping } from './check.ts';
import { MAPPING, type Mapping } from './schema.ts';
import { type MappingDocument, type MappingViolation, pointerTo, readYaml } from './yaml.ts';

/** TypeBox stops at 8 errors by default; all violations are reported together. */
Settings.Set({ maxErrors: 400 });

interface MappingSchemaError {
  readonly keyword: string;
  readonly schemaPath: string;
  readonly instancePath: string;
  readonly params: object;
}

type SchemaNode = Readonly<Record<string, unknown>>;

/** Resolves a JSON pointer. */
function at(value: unknown, pointer: string): unknown {
  let found = value;
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    found = (found as Record<string, unknown> | undefined)?.[name];
  }
  return found;
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The alternatives of a union. */
const branchesOf = (node: SchemaNode) => (node['anyOf'] ?? []) as readonly SchemaNode[];
const membersOf = (node: SchemaNode | undefined): string[] =>
  Object.keys(node?.['properties'] ?? {});

/**
 * Guesses which alternatives of a union a value was meant as: those of its type, and for objects
 * those whose first member it has. An alternative that contains the first members of all others
 * wins.
 */
function meantOf(
  union: MappingSchemaError,
  branches: readonly SchemaNode[],
  errors: readonly MappingSchemaError[],
  value: unknown,
): number[] {
  const wrongType = ({ keyword, schemaPath }: MappingSchemaError, index: number): boolean =>
    keyword === 'type' && schemaPath === `${union.schemaPath}/anyOf/${index}`;
  const typed = [...branches.keys()].filter(
    (index) => !errors.some((each) => wrongType(each, index)),
  );
  if (typed.length < 2 || !isObject(value)) return typed;
  const keyOf = (index: number): string => membersOf(branches[index])[0] ?? '';
  const found = typed.filter((index) => Object.hasOwn(value, keyOf(index)));
  const wide = found.filter((index) =>
    found.every((other) => membersOf(branches[index]).includes(keyOf(other))),
  );
  return wide.length === 1 ? wide : found;
}

/**
 * Drops the errors of alternatives that were not meant. If none or several were meant, one error
 * stands for the whole union.
 */
function withoutOthers(schema: TSchema, errors: readonly MappingSchemaError[], whole: unknown) {
  let left = [...errors];
  for (const union of errors.filter(({ keyword }) => keyword === 'anyOf')) {
    const branches = branchesOf(at(schema, union.schemaPath.slice(1)) as SchemaNode);
    const meant = meantOf(union, branches, errors, at(whole, union.instancePath));
    const start = `${union.schemaPath}/anyOf/`;
    left = left.filter((each) => {
      if (each === union) return meant.length !== 1;
      if (!each.schemaPath.startsWith(start)) return true;
      const branch = Number(each.schemaPath.slice(start.length).split('/')[0]);
      return meant.length === 1 && branch === meant[0];
    });
  }
  return left;
}

function unknownMembers(
  error: MappingSchemaError,
  node: SchemaNode,
): [name: string, message: string][] {
  const { additionalProperties } = error.params as { additionalProperties: string[] };
  const legal = membersOf(node);
  return additionalProperties.map((name) => {
    const [near] = nearest(name, legal, 1);
    const hint = near ? `did you mean "${near}"?` : `legal are ${legal.join(', ')}`;
    return [name, `There is no member "${quoted(name)}"; ${hint}`];
  });
}

/** Words a schema error for the value that was found. */
function messageOf(error: MappingSchemaError, node: SchemaNode, value: unknown): string {
  const expected = `expected ${node['description'] ?? 'something else'}`;
  if (error.keyword === 'enum') {
    const legal = node['enum'] as readonly string[];
    const [near] = typeof value === 'string' ? nearest(value, legal, 1) : [];
    const hint = near ? `; did you mean "${near}"?` : '';
    return `${expected}: one of ${legal.join(', ')}${hint}`;
  }
  if (value === null) return `The value is missing: ${expected}`;
  const keys = branchesOf(node).map((branch) => membersOf(branch)[0] ?? '');
  if (isObject(value) && keys.length > 0 && !keys.includes('')) {
    const found = keys.filter((key) => Object.hasOwn(value, key)).join(' and ');
    return `Exactly one of ${keys.join(', ')} is needed; found ${found || 'none of them'}`;
  }
  const wantsText = node['type'] === 'string' && typeof value === 'number';
  return wantsText ? `${expected}; put it between quotation marks` : expected;
}

const sentence = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

/** Converts schema errors to violations with lines and suggestions. */
function violationsOf(schema: TSchema, { value, lines }: MappingDocument): MappingViolation[] {
  const violations: MappingViolation[] = [];
  const add = (pointer: string, parent: string, message: string): void => {
    const line = lines.get(pointer) ?? lines.get(parent) ?? 1;
    violations.push({ line, pointer, message: sentence(message) });
  };
  const errors = withoutOthers(
    schema,
    [...Value.Errors(schema, value)] as MappingSchemaError[],
    value,
  );
  for (const error of errors) {
    const { keyword, instancePath } = error;
    const node = at(schema, error.schemaPath.slice(1)) as SchemaNode;
    if (keyword === 'additionalProperties') {
      // Errors of dictionary members are reported separately.
      if (node['additionalProperties'] !== false) continue;
      for (const [name, message] of unknownMembers(error, node)) {
        add(pointerTo(instancePath, name), instancePath, message);
      }
    } else if (keyword === 'required') {
      const { requiredProperties } = error.params as { requiredProperties: string[] };
      for (const name of requiredProperties) {
        const member = at(node, `/properties/${name}/description`);
        const missing = `The member "${name}" is missing: ${member}`;
        add(pointerTo(instancePath, name), instancePath, missing);
      }
    } else if (keyword !== 'boolean') {
      add(instancePath, '', messageOf(error, node, at(value, instancePath)));
    }
  }
  return violations.sort((a, b) => a.line - b.line);
}

/** A valid mapping file. */
export interface TableMapping {
  /** Path of the file, as given. */
  readonly path: string;
  /** SHA-256 of the file, a part of the identity of a load. */
  readonly sha256: Buffer;
  readonly mapping: Mapping;
  /** The line of a member, by its JSON pointer. */
  lineOf(pointer: string): number;
}

/** An invalid mapping file, with all violations. */
export class MappingError extends ExpectedError {
  override readonly name = 'MappingError';
  override readonly exitCode = EXIT.usage;
  readonly path: string;
  readonly violations: readonly MappingViolation[];

  constructor(path: string, violations: readonly MappingViolation[]) {
    const count = violations.length === 1 ? 'one thing is' : `${violations.length} things are`;
    super(`${path} cannot be used: ${count} wrong in it`);
    this.path = path;
    this.violations = violations;
  }

  /** Each violation as `file:line: member: message`. */
  get faults(): string[] {
    return this.violations.map(({ line, pointer, message }) => {
      const member = pointer === '' ? '' : ` ${quoted(pointer)}:`;
      return `${this.path}:${line}:${member} ${message}`;
    });
  }
}

/**
 * Parses and validates the bytes of a mapping file. @param path for messages
 * @throws MappingError for an invalid mapping
 */
export function mappingOf(bytes: Buffer, path: string): TableMapping {
  const written = readYaml(bytes);
  const lineOf = (pointer: string): number => {
    let place = pointer;
    while (place !== '' && !written.lines.has(place)) place = place.replace(/\/[^/]*$/, '');
    return written.lines.get(place) ?? 1;
  };
  let { violations } = written;
  if (violations.length === 0) violations = violationsOf(MAPPING, written);
  const mapping = written.value as Mapping;
  if (violations.length === 0) {
    violations = checkMapping(mapping).map(({ pointer, message }) => ({
      line: lineOf(pointer),
      pointer,
      message,
    }));
  }
  if (violations.length > 0) throw new MappingError(path, violations);
  return { path, sha256: createHash('sha256').update(bytes).digest(), mapping, lineOf };
}

/**
 * Reads a mapping file.
 * @throws MappingError for an invalid mapping, and errors of the file system
 */
export const readMapping = async (path: string): Promise<TableMapping> =>
  mappingOf(await readFile(path), path);
