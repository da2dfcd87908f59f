import { type SaxesOptions, SaxesParser, type SaxesTagNS } from 'saxes';
import { Refusal } from '../records/load-error.ts';

const SLICE = 65_536;
/** Slices without a tag after which a text is too long: 1 MiB. */
const SLICES_MAX = 16;

export type Tag = SaxesTagNS;
type Parser = SaxesParser<SaxesOptions & { xmlns: true }>;

/** Receives the tags and texts of a document. `line` is the current line of the parser. */
export interface XmlListener {
  open(tag: Tag, line: number): void;
  close?(tag: Tag, line: number): void;
  text?(text: string): void;
}

/** The value of an attribute without namespace; null if absent. */
export const attributeOf = (tag: Tag, name: string): string | null =>
  tag.attributes[name]?.value ?? null;

function parserOf(listener: XmlListener, onTag: () => void): Parser {
  const parser = new SaxesParser({ xmlns: true });
  parser.on('error', (error) => {
    throw new Refusal('invalid_layout', `The XML is damaged: ${error.message}`, {
      line: parser.line,
    });
  });
  // Entities can only be declared in a document type, so refusing it prevents entity expansion
  // attacks.
  parser.on('doctype', () => {
    throw new Refusal(
      'invalid_layout',
      'The XML has a document type declaration, which is not supported',
      {
        line: parser.line,
      },
    );
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
 * Streams a document to a listener. It yields after each slice, so that the caller can process the
 * collected data before the next one. Texts longer than 1 MiB are refused, because the parser would
 * buffer them.
 * @throws Refusal for XML that is not well-formed or not UTF-8
 */
export async function* feedXml(
  bytes: AsyncIterable<Buffer>,
  listener: XmlListener,
): AsyncGenerator<void> {
  let slicesWithoutTag = 0;
  const parser = parserOf(listener, () => {
    slicesWithoutTag = 0;
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
      slicesWithoutTag += 1;
      if (slicesWithoutTag > SLICES_MAX) {
        throw new Refusal('line_too_long', 'The XML holds a text of more than 1 MiB', {
          line: parser.line,
        });
      }
      yield;
    }
  }
  parser.write(textOf()).close();
}
