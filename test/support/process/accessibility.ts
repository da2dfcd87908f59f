import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';

const axe = await readFile(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

interface AxeViolation {
  readonly id: string;
  readonly nodes: { readonly html: string; readonly failureSummary: string }[];
}

/** The rules of WCAG 2.2 AA that a page breaks, each with its places. */
export async function brokenRules(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
  const violations = (await page.evaluate(
    `axe.run({ runOnly: ${JSON.stringify(tags)} }).then(({ violations }) => violations)`,
  )) as AxeViolation[];
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary}`),
  );
}
