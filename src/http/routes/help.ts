import { readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import { Marked, type Tokens } from 'marked';
import { PROSE_HEADERS, prosePage } from '../reply/page.ts';
import { documentRoute } from '../reply/prepared.ts';

/** The documents that are pages of the service, in the order of their menu. */
const PAGES = {
  explorer: 'The explorer',
  formats: 'Formats',
  conversion: 'Conversion',
} as const;

type Page = keyof typeof PAGES;

const NAMES = Object.keys(PAGES) as Page[];

/** The id of a heading, as GitHub makes it: links between the documents rely on it. */
const idOf = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^\p{Letter}\p{Number}\s-]/gu, '')
    .trim()
    .replace(/\s/g, '-');

/** The address of a link on a page; null if it leads to a document that is no page. */
function targetOf(href: string): string | null {
  if (/^(#|https?:)/.test(href)) return href;
  const [, name = '', anchor = ''] = /^([\w-]+)\.md(#.*)?$/.exec(href) ?? [];
  return (NAMES as string[]).includes(name) ? `${name}${anchor}` : null;
}

const marked = new Marked({
  renderer: {
    heading({ tokens, depth, text }: Tokens.Heading): string {
      return `<h${depth} id="${idOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
    },
    link({ href, tokens }: Tokens.Link): string {
      const text = this.parser.parseInline(tokens);
      const target = targetOf(href);
      return target === null ? text : `<a href="${target}">${text}</a>`;
    },
    // The explorer itself is beside its help, so its picture is left out.
    image: () => '',
  },
  // A block that is wider than the screen scrolls, also by the keyboard.
  hooks: { postprocess: (page) => page.replaceAll('<pre>', '<pre tabindex="0">') },
});

/** A document as a page. */
async function pageOf(page: Page): Promise<string> {
  const file = new URL(`../../../docs/${page}.md`, import.meta.url);
  const body = await marked.parse(await readFile(file, 'utf8'));
  const menu = NAMES.map(
    (name) => `<a href="${name}"${name === page ? ' aria-current="page"' : ''}>${PAGES[name]}</a>`,
  );
  const nav = `<nav aria-label="Help">${menu.join('')}</nav>`;
  return prosePage(PAGES[page], 'help/explorer', `${nav}\n${body}`);
}

/** `GET /help/<page>`: the documents for readers of prices, as pages of the service. */
export function helpRoutes(app: FastifyInstance): void {
  for (const page of NAMES) {
    documentRoute(app, `/help/${page}`, {
      type: 'text/html; charset=utf-8',
      read: () => pageOf(page),
      headers: PROSE_HEADERS,
    });
  }
}
