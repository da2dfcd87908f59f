import { createRequire } from 'node:module';

const { DefaultSettings, TaskUtils } = createRequire(import.meta.url)(
  '@microsoft/powerquery-parser',
);

/** A node of the syntax tree, as far as it is read here. */
interface SyntaxNode {
  readonly kind: string;
  readonly literal: string;
  readonly literalKind: string;
  readonly elements: readonly { node: SyntaxNode }[];
  readonly content: SyntaxNode;
  readonly identifier: SyntaxNode;
  readonly key: SyntaxNode;
  readonly value: SyntaxNode;
  readonly head: SyntaxNode;
  readonly recursiveExpressions: { elements: readonly SyntaxNode[] };
}

/** A value of a program: a text, number, list or record; null for anything else. */
export type ProgramValue =
  | string
  | number
  | null
  | readonly ProgramValue[]
  | { readonly [name: string]: ProgramValue };

/** A call of a function by its name. */
export interface FunctionCall {
  readonly name: string;
  readonly values: readonly ProgramValue[];
}

const textOf = (literal: string): string => literal.slice(1, -1).replaceAll('""', '"');
const nameOf = (literal: string): string =>
  literal.startsWith('#"') ? textOf(literal.slice(1)) : literal;

/** The value of an expression; `known` are values of identifiers. */
function readValue(node: SyntaxNode, known: Readonly<Record<string, ProgramValue>>): ProgramValue {
  const items = node.content?.elements?.map((each) => each.node) ?? [];
  switch (node.kind) {
    case 'LiteralExpression':
      if (node.literalKind === 'Text') return textOf(node.literal);
      return node.literalKind === 'Numeric' ? Number(node.literal) : null;
    case 'ListExpression':
      return items.map((each) => readValue(each, known));
    case 'RecordExpression':
      return Object.fromEntries(
        items.map(({ key, value }) => [nameOf(key.literal), readValue(value, known)]),
      );
    case 'IdentifierExpression':
      return known[node.identifier.literal] ?? null;
    default:
      return null;
  }
}

/** Every node of a tree. */
function* nodesOf(tree: unknown): Generator<SyntaxNode> {
  if (typeof tree !== 'object' || tree === null) return;
  if ('kind' in tree) yield tree as SyntaxNode;
  for (const each of Object.values(tree)) yield* nodesOf(each);
}

/**
 * Reads a program of Power Query by Microsoft's parser of the language.
 * @returns its calls, and its lists of two whose second member is no literal: columns with types
 * @throws Error if the text is no program
 */
export async function readProgram(
  text: string,
  known: Readonly<Record<string, ProgramValue>> = {},
): Promise<{ calls: readonly FunctionCall[]; columns: readonly string[] }> {
  const read = await TaskUtils.tryLexParse(DefaultSettings, text);
  if (read.resultKind !== 'Ok') throw new Error(read.error.message);
  const nodes = [...nodesOf(read.ast)];
  const calls = nodes.flatMap(({ kind, head, recursiveExpressions }) => {
    if (kind !== 'RecursivePrimaryExpression' || head.kind !== 'IdentifierExpression') return [];
    const [first] = recursiveExpressions.elements;
    if (first?.kind !== 'InvokeExpression') return [];
    const values = first.content.elements.map((each) => readValue(each.node, known));
    return [{ name: head.identifier.literal, values }];
  });
  const pairs = nodes.filter(({ kind, content }) => kind === 'ListExpression' && content.elements);
  const columns = pairs.flatMap(({ content: { elements } }) => {
    const [name, type, ...more] = elements.map((each) => each.node);
    const isTyped = type && more.length === 0 && /Type|Identifier|Recursive/.test(type.kind);
    return isTyped && name?.literalKind === 'Text' ? [textOf(name.literal)] : [];
  });
  return { calls, columns };
}
