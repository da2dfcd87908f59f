import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The folder of the project. */
export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** A fenced block of a page. */
export interface CodeBlock {
  readonly page: string;
  readonly language: string;
  /** The word after the language, if any: how tests treat the block. */
  readonly tag: string;
  readonly text: string;
}

/** The fenced blocks with a language of some pages, such as `docs/recipes/*.md`. */
export const blocksOf = (pages: string): readonly CodeBlock[] =>
  globSync(pages, { cwd: ROOT })
    .sort()
    .flatMap((page) =>
      [
        ...readFileSync(`${ROOT}${page}`, 'utf8').matchAll(/^```(\w+)(?: (\w+))?\n(.*?)^```$/gms),
      ].map(([, language = '', tag = '', text = '']) => ({ page, language, tag, text })),
    );

/** The text of the only block of a page with a language. */
export function blockOf(page: string, language: string): string {
  const [block, ...more] = blocksOf(page).filter((each) => each.language === language);
  if (block === undefined || more.length > 0) throw new Error(`${page}: not one ${language}`);
  return block.text;
}
