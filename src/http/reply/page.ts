import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';

/** A static file of the pages. */
interface PageFile {
  readonly name: string;
  readonly bytes: Buffer;
}

const EXPLORER_FOLDER = new URL('../../explorer/', import.meta.url);

/** Files of npm packages, by their path below the explorer. */
const PACKAGED: Readonly<Record<string, string>> = {
  'vendor/preact.js': 'preact',
  'vendor/htm.js': 'htm',
  'vendor/uplot.js': 'uplot/dist/uPlot.iife.min.js',
};

/** Empty lines, comments on lines of their own, and the indentation of a line. */
const DROPPED = /^[ \t]*(?:\/\/.*|\/\*[\s\S]*?\*\/)?\n|^[ \t]+/my;

const STRING = String.raw`'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"`;

/** A regular expression, which follows an operator, unlike a division. */
const PATTERN = [
  String.raw`(?<=(?:[(,=:[!&|?{};>]|return)\s*)`,
  String.raw`\/(?![/*])(?:\[(?:[^\]\\\n]|\\.)*\]|[^/[\\\n]|\\.)+\/`,
].join('');

/** A string, a regular expression, another comment, or code up to the next of them. */
const KEPT = new RegExp(
  String.raw`${STRING}|${PATTERN}|\/\/.*|\/\*[\s\S]*?\*\/|[^${'`'}'"/{}\n]+|[\s\S]`,
  'y',
);

/** The text of a template up to its end or to its next expression. */
const TEMPLATE_TEXT = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)/y;

/**
 * The elements of the head that all pages share.
 * @param base relative address of the service, such as `../`: a proxy may add a path prefix
 */
export const sharedHead = (base: string, title: string): string => `<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="${base}explorer/${EDITION}/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${base}explorer/${EDITION}/style.css">`;

const matchAt = (pattern: RegExp, text: string, at: number): string => {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? '';
};

/** Opens a template of htm, which drops the white space around a line of its texts. */
const HTML = 'html`';

/**
 * A program without the comments on lines of their own, empty lines and indentation, also in the
 * templates of htm. Other templates stay as they are: programs that users copy are among them.
 */
function compacted(text: string): string {
  // The open templates, braces and expressions of templates.
  const open: string[] = [];
  let result = '';
  for (let at = 0; at < text.length; ) {
    const isTemplate = open.at(-1)?.endsWith('`') ?? false;
    const dropped = isTemplate ? '' : matchAt(DROPPED, text, at);
    const kept = dropped === '' ? matchAt(isTemplate ? TEMPLATE_TEXT : KEPT, text, at) : '';
    at += dropped.length + kept.length;
    result += open.at(-1) === HTML ? kept.replace(/\n[ \t]+/g, '\n') : kept;
    if (isTemplate) {
      if (kept.endsWith('${')) open.push('${');
      else open.pop();
    } else if (kept === '`') open.push(result.endsWith(HTML) ? HTML : kept);
    else if (kept === '{') open.push(kept);
    else if (kept === '}') open.pop();
    if (kept === '' && dropped === '') throw new Error('a program ends within a template');
  }
  return result;
}

/** A file of the explorer without comments and indentation: a fifth of the bytes of a page. */
function withoutComments(name: string, file: Buffer): Buffer {
  const text = file.toString();
  if (name.endsWith('.js')) return Buffer.from(compacted(text));
  const short = text.replace(/^[ \t]*\/\*[\s\S]*?\*\/\n/gm, '').replace(/^\s+/gm, '');
  // White space beside these characters of a style sheet has no meaning.
  return Buffer.from(name.endsWith('.css') ? short.replace(/\s*([{};,])\s*/g, '$1') : short);
}

/** All static files, read at the start: the path of a request is never opened. */
export const PAGE_FILES: readonly PageFile[] = [
  ...readdirSync(EXPLORER_FOLDER, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .sort()
    .filter((name) => ['.js', '.css', '.svg'].includes(extname(name)))
    .map((name) => ({
      name,
      bytes: withoutComments(name, readFileSync(new URL(name, EXPLORER_FOLDER))),
    })),
  ...Object.entries(PACKAGED).map(([name, path]) => ({
    name,
    bytes: readFileSync(new URL(import.meta.resolve(path))),
  })),
];

/** Hash of all files, a part of their addresses, so that browsers may cache them for ever. */
export const EDITION: string = PAGE_FILES.reduce(
  (hash, { name, bytes }) => hash.update(`${name}:${bytes.length}:`).update(bytes),
  createHash('sha256'),
)
  .digest('hex')
  .slice(0, 12);

/** Pages in the order of the header. */
const PAGES = {
  explorer: 'Explorer',
  docs: 'API',
  'docs/problems': 'Error codes',
  'help/explorer': 'Help',
} as const;

/** The header that all pages share: the name of the product, and links to the pages. */
export function sharedHeader(base: string, current: keyof typeof PAGES): string {
  const links = Object.entries(PAGES).map(([page, name]) => {
    const state = page === current ? ' aria-current="page"' : '';
    return `<a href="${base}${page}"${state}>${name}</a>`;
  });
  return `<header class="bar">
<a class="brand" href="${base}explorer">
<span class="mark" aria-hidden="true"></span>Commodity Prices</a>
<nav aria-label="Pages">${links.join('')}</nav>
<div id="account"></div>
</header>`;
}

/** The headers of a page of texts. It loads only style sheets and the icon. */
export const PROSE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'self'",
};

/**
 * A page of texts, one folder below the address of the service.
 * @param current its entry in the menu of all pages
 * @param content HTML
 */
export const prosePage = (
  title: string,
  current: keyof typeof PAGES,
  content: string,
): string => `<!doctype html>
<html lang="en">
<head>
${sharedHead('../', `${title}: Commodity Prices`)}
<link rel="stylesheet" href="../explorer/${EDITION}/prose.css">
</head>
<body>
${sharedHeader('../', current)}
<main class="prose">
${content}
</main>
</body>
</html>
`;
