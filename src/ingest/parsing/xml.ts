import { type SaxesOptions, SaxesParser, type SaxesTagNS } from 'saxes';
import { Refusal } from '../records/load-error.ts';

const SLICE = 65_536;
/** Slices without a single tag after which a text is too long: 1 MiB. */
const SLICES_MAX = 16;

export type Tag = SaxesTagNS;
type Parser = SaxesParser<SaxesOptions & { xmlns: true }>;

/** What a reader of one kind of document listens to. `line` is that of the parser. */
export interface XmlListener {
  open(tag: Tag, line: number): void;
  close?(tag: Tag, line: number): void;
  text?(text: string): void;
}

/** The value of an attribute without namespace; null when the tag does not have it. */
export const attributeOf = (tag: Tag, name: string): string | null =>
  tag.attributes[name]?.value ?? null;

function parserOf(listener: XmlListener, onTag: () => void): Parser {
  const parser = new SaxesParser({ xmlns: true });
  parser.on('error', (error) => {
    throw new Refusal('invalid_layout', `The XML is damaged: ${error.message}`, {
      line: parser.line,
    });
  });
  // Entities can only be declared here, so nothing can grow out of a few bytes.
  parser.on('doctype', () => {
    throw new Refusal('invalid_layout', 'The XML has a document type, which none of ours has', {
      line: parser.line,
    });
  });
  parser.on('opentag', (tag) => {
    onTag();
    listener.open(tag, parser.line);
  });
  parser.on('closetag', (tag) => {
    onTag();
    listener.close?.(tag, parser.line);
  });
  parser.on('text', (text) => listener.text?.(text));
  parser.on('cdata', (text) => listener.text?.(text));
  return parser;
}

/**
 * Feeds a document to a listener in a stream, and yields after each slice of it, so that what the
 * listener collected can be handed on. Texts longer than 1 MiB are refused: the parser would keep
 * them in memory.
 * @throws Refusal when the document is not well-formed XML in UTF-8
 */
export async function* feedXml(
  bytes: AsyncIterable<Buffer>,
  listener: XmlListener,
): AsyncGenerator<void> {
  let silent = 0;
  const parser = parserOf(listener, () => {
    silent = 0;
  });
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const textOf = (chunk?: Buffer): string => {
    try {
      return chunk ? decoder.decode(chunk, { stream: true }) : decoder.decode();
    } catch {
      throw new Refusal('invalid_encoding', 'The XML is not UTF-8', { line: parser.line });
    }
  };
  for await (const chunk of bytes) {
    for (let start = 0; start < chunk.length; start += SLICE) {
      parser.write(textOf(chunk.subarray(start, start + SLICE)));
      silent += 1;
      if (silent > SLICES_MAX) {
        throw new Refusal('line_too_long', 'The XML holds a text of more than 1 MiB', {
          line: parser.line,
        });
      }
      yield;
    }
  }
  parser.write(textOf()).close();
}
