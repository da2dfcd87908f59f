import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContextOptions, Page, Request } from 'playwright-core';
import type t from 'tap';
import type { TestDatabase } from '../database/database.ts';
import { addressOf } from '../http/address.ts';
import { serviceOn } from '../http/service.ts';
import { startBrowser } from './browser.ts';

type Test = Pick<typeof t, 'teardown'>;

/** The service and the browser that the tests of a file share. */
export interface Explorer {
  readonly address: string;
  readonly key: string;
  readonly browser: Browser;
  /** Opens a page in a context of its own, which ends with the test. */
  open(test: Test, options?: BrowserContextOptions): Promise<Visit>;
}

/** A page, and what was seen of it. */
export interface Visit {
  readonly page: Page;
  readonly requests: Request[];
  /** Violations of the policy for content, and errors of scripts. */
  readonly faults: string[];
  /** Shows a view with the key of the test, and waits until the page has drawn it. */
  show(hash: string): Promise<void>;
}

/** Timeout of the actions on a page. A busy machine needs more than the 30 s of Playwright. */
const WAIT_MS = 120_000;

/** Starts the service over a database, and a browser, for all tests of a file. */
export async function explorerOn(
  test: Test,
  database: TestDatabase,
  env: Readonly<Record<string, string>> = {},
): Promise<Explorer> {
  const { app, key } = await serviceOn(test, database, env);
  const address = await addressOf(app);
  const browser = await startBrowser(test);
  const open: Explorer['open'] = async (own, options) => {
    const context = await browser.newContext({
      viewport: { width: 1280, height: 900 },
      ...options,
    });
    own.teardown(() => context.close());
    context.setDefaultTimeout(WAIT_MS);
    const page = await context.newPage();
    const requests: Request[] = [];
    const faults: string[] = [];
    page.on('request', (request) => requests.push(request));
    page.on('response', (answer) => {
      if (answer.url().includes('/explorer') && answer.status() >= 400) {
        faults.push(`${answer.status()} ${answer.url()}`);
      }
    });
    page.on('requestfailed', (request) => {
      // A page that is left drops what it still waits for.
      const isDropped = request.failure()?.errorText === 'net::ERR_ABORTED';
      if (!isDropped && request.url().includes('/explorer/')) {
        faults.push(`failed ${request.url()}`);
      }
    });
    page.on('pageerror', (error) => faults.push(String(error.stack)));
    page.on('console', (message) => {
      if (/Content.Security|Trusted/i.test(message.text())) faults.push(message.text());
    });
    const show = async (hash: string): Promise<void> => {
      await page.goto('about:blank');
      await page.goto(`${address}/explorer#key=${key}&${hash}`);
      await settled(page, faults);
    };
    return { page, requests, faults, show };
  };
  return { address, key, browser, open };
}

/** Waits until nothing on the page waits for an answer. */
export async function settled(page: Page, faults: readonly string[] = []): Promise<void> {
  // The page learns of a new address in a task of its own, after the browser has it.
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done)))');
  const waited = page.waitForFunction(() => {
    const root = globalThis as unknown as {
      document: {
        querySelector(selector: string): unknown;
        body: { innerText: string };
      };
    };
    const { document } = root;
    const isBusy = document.querySelector('[aria-busy="true"], .stale') !== null;
    return (
      !isBusy &&
      document.querySelector('main > :not(noscript, search, .note)') !== null &&
      !/Asking…|Asking for|Reading every|Looking for|\n…/.test(document.body.innerText)
    );
  });
  await waited.catch(async (error: Error) => {
    const text = String(await page.evaluate('document.body.innerText'));
    throw new Error(`${error.message}\n${faults.join('\n')}\n${text.slice(0, 500)}`);
  });
}

/** A text with a blank for each white space, as a reader sees it. */
export const words = (text: string): string => text.replace(/\s+/g, ' ').trim();

/** Script that records the texts that the page writes on canvases, in `globalThis.written`. */
export const RECORD_WRITTEN = `globalThis.written = [];
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...others) {
    written.push(text);
    return fillText.call(this, text, ...others);
  };`;

const PICTURES = fileURLToPath(new URL('../../../screenshots/', import.meta.url));

/** Keeps a picture of a page in the folder `screenshots`. */
export async function keepPicture(page: Page, name: string, isWhole = true): Promise<void> {
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: `${PICTURES}${name}.png`, fullPage: isWhole });
}
