import { startBrowser } from '../test/support/process/browser.ts';
import type { Cluster } from './cluster.ts';
import { startService } from './contenders.ts';
import { MARKET, MARKET_CODES } from './dataset.ts';
import { percentile } from './http-client.ts';
import { waitUntilIdle } from './idle.ts';
import { log } from './log.ts';

/** Prices of one view, with all of their points. */
const PRICES = 10;

/** Moves of the cursor in one sample. */
const MOVES = 120;

/** Times of the explorer in milliseconds, the best of all rounds. */
export interface ExplorerTimes {
  /** From the text of the answer to the frame in which the chart is painted. */
  readonly drawnMs: number;
  /** From a click that changes the scale to the next frame after the chart was drawn again. */
  readonly redrawnMs: number;
  /** 95th percentile of a move of the cursor: the event, the read-out and its layout. */
  readonly cursorMs: number;
}

/** Records the time of an answer with series. */
const WATCH = `(() => {
  const { text } = Response.prototype;
  Response.prototype.text = async function () {
    const read = await text.call(this);
    if (this.url.includes('includeSeries')) globalThis.arrived = performance.now();
    return read;
  };
})()`;

/** Bound of each script: a page that draws nothing has no figure. */
const LIMIT_MS = 60_000;

const DRAWN = `new Promise((done) => {
  setTimeout(() => done(NaN), ${LIMIT_MS});
  const look = () => globalThis.arrived && document.querySelector('.chart')?.chart
    ? requestAnimationFrame(() => done(performance.now() - globalThis.arrived))
    : requestAnimationFrame(look);
  look();
})`;

const REDRAWN = `new Promise((done) => {
  setTimeout(() => done(NaN), ${LIMIT_MS});
  const before = document.querySelector('.chart').chart;
  const begin = performance.now();
  [...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Log').click();
  const look = () => document.querySelector('.chart').chart === before
    ? requestAnimationFrame(look)
    : requestAnimationFrame(() => done(performance.now() - begin));
  look();
})`;

const MOVED = `(async () => {
  const over = document.querySelector('.chart .u-over');
  const { left, top, width } = over.getBoundingClientRect();
  const times = [];
  for (let at = 1; at <= ${MOVES}; at += 1) {
    const begin = performance.now();
    over.dispatchEvent(new MouseEvent('mousemove', {
      bubbles: true, clientX: left + (width * at) / ${MOVES + 20}, clientY: top + 100,
    }));
    await new Promise((done) => setTimeout(done));
    document.querySelector('.readout').getBoundingClientRect();
    times.push(performance.now() - begin);
    await new Promise(requestAnimationFrame);
  }
  return times;
})()`;

const bestOf = (times: readonly number[]): number => {
  if (times.some(Number.isNaN)) throw new Error('the explorer drew nothing');
  return Math.min(...times);
};

/**
 * Ten prices of ten years in the explorer, each round in a page of its own.
 * @throws if Chromium is not on the path, or the page draws nothing
 */
export async function measureExplorer(cluster: Cluster, rounds: number): Promise<ExplorerTimes> {
  const service = await startService(cluster);
  let close: () => unknown = () => {};
  try {
    const browser = await startBrowser({
      teardown: (end) => {
        close = end as () => unknown;
      },
    });
    await waitUntilIdle(cluster, service.pid);
    const view = MARKET_CODES.slice(0, PRICES).map((code) => `price=${MARKET}/${code}`);
    const address = `${service.address}/explorer#key=${cluster.key}&${view.join('&')}`;
    const [drawn, redrawn, moved]: [number[], number[], number[]] = [[], [], []];
    for (let round = 1; round <= rounds; round += 1) {
      log(`explorer, round ${round} of ${rounds}`);
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
      const page = await context.newPage();
      await page.addInitScript(WATCH);
      await page.goto(address, { timeout: LIMIT_MS });
      drawn.push(Number(await page.evaluate(DRAWN)));
      await page.waitForSelector('.readout', { timeout: LIMIT_MS });
      for (let click = 0; click < 2; click += 1) {
        redrawn.push(Number(await page.evaluate(REDRAWN)));
      }
      moved.push(percentile((await page.evaluate(MOVED)) as number[], 0.95));
      await context.close();
    }
    return { drawnMs: bestOf(drawn), redrawnMs: bestOf(redrawn), cursorMs: bestOf(moved) };
  } finally {
    await close();
    await service.stop();
  }
}
