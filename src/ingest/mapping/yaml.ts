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

/** A place in a file. */
export interface YamlPlace {
  /** Line and column, from 1. */
  readonly line: number;
  readonly column: number;
}

/** One problem of a mapping. */
export interface MappingViolation {
  /** Line of the mapping file, from 1. */
  readonly line: number;
  /** Column of the line, from 1. */
  readonly column?: number;
  /** JSON pointer of the member; empty for the whole mapping. */
  readonly pointer: string;
  readonly message: string;
}

/** The content of a mapping file, with the lines of its members. */
export interface MappingDocument {
  readonly value: unknown;
  /** The line of each member, by its pointer. */
  readonly lines: ReadonlyMap<string, number>;
  /** The place of each member, by its pointer. */
  readonly places: ReadonlyMap<string, YamlPlace>;
  readonly violations: readonly MappingViolation[];
}

/** The pointer of a member (RFC 6901). */
export const pointerTo = (parent: string, name: string | number): string =>
  `${parent}/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`;

const WHOLE = /^(?:0|-?[1-9]\d{0,8})$/;

/** Converts YAML nodes to plain values and records their lines. */
class YamlReader {
  readonly lines = new Map<string, number>();
  readonly places = new Map<string, YamlPlace>();
  readonly violations: MappingViolation[] = [];
  private readonly counter: LineCounter;

  constructor(counter: LineCounter) {
    this.counter = counter;
  }

  placeAt(offset: number): YamlPlace {
    const { line, col } = this.counter.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  }

  fail(offset: number, pointer: string, message: string): null {
    this.violations.push({ ...this.placeAt(offset), pointer, message });
    return null;
  }

  /** Records the place of a member. */
  private note(pointer: string, offset: number): void {
    const place = this.placeAt(offset);
    this.lines.set(pointer, place.line);
    this.places.set(pointer, place);
  }

  value(node: Node | null, pointer: string, offset: number): unknown {
    const at = node?.range?.[0] ?? offset;
    if (!this.lines.has(pointer)) this.note(pointer, at);
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
      this.note(member, offset);
      members.set(name, this.value(pair.value, member, offset));
    }
    // Creates own members for all names, even `__proto__`.
    return Object.fromEntries(members);
  }
}

const placesOf = ({ lines, places, violations }: YamlReader) => ({ lines, places, violations });

const failure = (line: number, message: string): MappingDocument => ({
  value: null,
  lines: new Map(),
  places: new Map(),
  violations: [{ line, pointer: '', message }],
});

/** A kind of YAML file: its name in messages, and its largest size in bytes. */
export interface YamlKind {
  readonly name: string;
  readonly bytesMax: number;
}

const MAPPINGS: YamlKind = { name: 'mapping', bytesMax: MAPPING_BYTES_MAX };

/** Parses a mapping: YAML 1.2 without tags, anchors, aliases and duplicate names. */
export function readYaml(bytes: Buffer, { name, bytesMax } = MAPPINGS): MappingDocument {
  if (bytes.length > bytesMax) return failure(1, `The ${name} is larger than ${bytesMax} bytes`);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return failure(1, `The ${name} is not text in UTF-8`);
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
    if (document.directives?.yaml.explicit) reader.fail(0, '', `A ${name} has no directives`);
    if (reader.violations.length > 0) {
      return { ...placesOf(reader), value: null };
    }
    return { value: reader.value(document.contents as Node | null, '', 0), ...placesOf(reader) };
  } catch (error) {
    // The parser recurses for each open bracket.
    if (error instanceof RangeError) return failure(1, 'Not YAML: nested too deep');
    throw error;
  }
}
