import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type YAMLMap,
} from 'yaml';
import { quoted } from '../../errors.ts';

/** Largest mapping file, in bytes. */
export const MAPPING_BYTES_MAX = 262_144;
const DEPTH_MAX = 8;

/** One problem of a mapping. */
export interface MappingViolation {
  /** Line of the mapping file, from 1. */
  readonly line: number;
  /** JSON pointer of the member; empty for the whole mapping. */
  readonly pointer: string;
  readonly message: string;
}

/** The content of a mapping file, with the lines of its members. */
export interface MappingDocument {
  readonly value: unknown;
  /** The line of each member, by its pointer. */
  readonly lines: ReadonlyMap<string, number>;
  readonly violations: readonly MappingViolation[];
}

/** The pointer of a member (RFC 6901). */
export const pointerTo = (parent: string, name: string | number): string =>
  `${parent}/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`;

const WHOLE = /^(?:0|-?[1-9]\d{0,8})$/;

/** Converts YAML nodes to plain values and records their lines. */
class YamlReader {
  readonly lines = new Map<string, number>();
  readonly violations: MappingViolation[] = [];
  private readonly counter: LineCounter;

  constructor(counter: LineCounter) {
    this.counter = counter;
  }

  lineAt(offset: number): number {
    return Math.max(1, this.counter.linePos(offset).line);
  }

  fail(offset: number, pointer: string, message: string): null {
    this.violations.push({ line: this.lineAt(offset), pointer, message });
    return null;
  }

  value(node: Node | null, pointer: string, offset: number): unknown {
    const at = node?.range?.[0] ?? offset;
    if (!this.lines.has(pointer)) this.lines.set(pointer, this.lineAt(at));
    if (node === null) return null;
    if (pointer.split('/').length > DEPTH_MAX + 1) return this.fail(at, pointer, 'Nested too deep');
    if (isAlias(node)) return this.fail(at, pointer, 'An alias (*name): write the value out');
    if ('anchor' in node && node.anchor) {
      return this.fail(at, pointer, 'An anchor (&name): anchors are not supported');
    }
    if (node.tag) return this.fail(at, pointer, `A tag (${quoted(node.tag)}): values have no tags`);
    if (isMap(node)) return this.map(node, pointer, at);
    if (isSeq(node)) {
      return node.items.map((item, index) =>
        this.value(item as Node | null, pointerTo(pointer, index), at),
      );
    }
    return isScalar(node) ? this.scalar(node) : this.fail(at, pointer, 'Not a value of YAML');
  }

  /** An integer is converted to a number; other numbers remain text, digit for digit. */
  private scalar({ value, source }: { value: unknown; source?: string }): unknown {
    if (typeof value !== 'number' && typeof value !== 'bigint') return value;
    const text = source ?? String(value);
    return WHOLE.test(text) ? Number(text) : text;
  }

  private map(map: YAMLMap, pointer: string, at: number): unknown {
    const members = new Map<string, unknown>();
    for (const pair of map.items as Pair<Node | null, Node | null>[]) {
      const { key } = pair;
      const offset = key?.range?.[0] ?? at;
      const isPlain = isScalar(key) && !key.tag && !key.anchor && key.value !== null;
      if (!isPlain || key.source === undefined) {
        this.fail(offset, pointer, 'A name must be a plain text');
        continue;
      }
      const name = key.source;
      const member = pointerTo(pointer, name);
      if (members.has(name)) {
        const line = this.lines.get(member);
        this.fail(offset, member, `The name appears twice, first in line ${line}`);
        continue;
      }
      this.lines.set(member, this.lineAt(offset));
      members.set(name, this.value(pair.value, member, offset));
    }
    // Creates own members for all names, even `__proto__`.
    return Object.fromEntries(members);
  }
}

const failure = (line: number, message: string): MappingDocument => ({
  value: null,
  lines: new Map(),
  violations: [{ line, pointer: '', message }],
});

/** Parses a mapping: YAML 1.2 without tags, anchors, aliases and duplicate names. */
export function readYaml(bytes: Buffer): MappingDocument {
  if (bytes.length > MAPPING_BYTES_MAX) {
    return failure(1, `The mapping is larger than ${MAPPING_BYTES_MAX} bytes`);
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return failure(1, 'The mapping is not text in UTF-8');
  }
  const counter = new LineCounter();
  const reader = new YamlReader(counter);
  try {
    const document = parseDocument(text, {
      lineCounter: counter,
      prettyErrors: false,
      strict: true,
      uniqueKeys: false,
      version: '1.2',
    });
    for (const { pos, message } of [...document.errors, ...document.warnings]) {
      reader.fail(pos[0], '', `Not YAML: ${quoted(message)}`);
    }
    if (document.directives?.yaml.explicit) reader.fail(0, '', 'A mapping has no directives');
    if (reader.violations.length > 0) {
      return { value: null, lines: reader.lines, violations: reader.violations };
    }
    const value = reader.value(document.contents as Node | null, '', 0);
    return { value, lines: reader.lines, violations: reader.violations };
  } catch (error) {
    // The parser recurses for each open bracket.
    if (error instanceof RangeError) return failure(1, 'Not YAML: nested too deep');
    throw error;
  }
}
