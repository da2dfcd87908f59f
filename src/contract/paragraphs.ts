/** Markdown of paragraphs, each given as the lines that make it up. */
export const paragraphs = (...texts: readonly (readonly string[])[]): string =>
  texts.map((lines) => lines.join(' ')).join('\n\n');
