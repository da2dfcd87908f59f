import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { shown } from '../../errors.ts';
import { checkMapping } from './check.ts';
import { MAPPING, type Mapping } from './schema.ts';
import { violationsOf } from './violations.ts';
import { readYaml, type Violation } from './yaml.ts';

/** A mapping file that was found to be right. */
export interface TableMapping {
  /** Path of the file, as it was given. */
  readonly path: string;
  /** SHA-256 of the file: a part of what a load is. */
  readonly sha256: Buffer;
  readonly mapping: Mapping;
  /** The line of a member, by its JSON pointer. */
  lineOf(pointer: string): number;
}

/** A mapping file that is wrong; every violation is named. */
export class MappingError extends Error {
  override readonly name = 'MappingError';
  readonly path: string;
  readonly violations: readonly Violation[];

  constructor(path: string, violations: readonly Violation[]) {
    const count = violations.length === 1 ? 'one thing is' : `${violations.length} things are`;
    super(`${path} cannot be used: ${count} wrong in it`);
    this.path = path;
    this.violations = violations;
  }

  /** Each violation as `file:line: member: what is wrong`. */
  get lines(): string[] {
    return this.violations.map(({ line, pointer, message }) => {
      const member = pointer === '' ? '' : ` ${shown(pointer)}:`;
      return `${this.path}:${line}:${member} ${message}`;
    });
  }
}

/**
 * A mapping from the bytes of its file; `path` is for messages.
 * @throws MappingError when it is wrong
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
 * @throws MappingError when it is wrong, and the errors of the file system
 */
export const readMapping = async (path: string): Promise<TableMapping> =>
  mappingOf(await readFile(path), path);
