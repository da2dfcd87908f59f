import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import type t from 'tap';

/** Names under which distributions install Chromium. The shell needs half the CPU. */
const NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];

/** A program on the path; null where there is none. */
export function programOnPath(names: readonly string[]): string | null {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const places = names.flatMap((name) => folders.map((folder) => join(folder, name)));
  return places.find((place) => existsSync(place)) ?? null;
}

/** The browser of this machine; null where there is none. */
export const browserPath = (): string | null => programOnPath(NAMES);

/** Starts the browser for a test file. */
export async function startBrowser(test: Pick<typeof t, 'teardown'>): Promise<Browser> {
  const executablePath = browserPath();
  if (executablePath === null) throw new Error('These tests need Chromium on the path');
  // A container has no sandbox of its own to offer, and no graphics card.
  const browser = await chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu'],
  });
  test.teardown(() => browser.close());
  return browser;
}
