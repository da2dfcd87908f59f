import type { MarketSlug } from '../catalog/markets.ts';
import { MARKETS } from '../catalog/markets.ts';
import type { LatePrice } from '../prices/calendar/late.ts';
import { EXIT } from '../std/base-errors.ts';
import { PROGRAM } from '../std/program.ts';
import { checkMarkets, command, json, option, repeatable } from './command.ts';
import { printLines, printTable, timeText } from './output.ts';

interface LateOptions {
  readonly market: string[];
  readonly samples?: true;
  readonly json?: true;
}

function printLate(late: readonly LatePrice[]): void {
  if (late.length === 0) {
    printLines('No price is late.');
    return;
  }
  printTable(late, {
    market: ({ market }) => market,
    code: ({ code }) => code,
    name: ({ name }) => name,
    last: ({ lastAssessedAt }) => lastAssessedAt,
    due: ({ late: { day } }) => day,
    'late since': ({ late: { since } }) => timeText(since),
    by: ({ calendar, late: { by } }) => (by === 'calendar' ? calendar : 'frequency'),
  });
}

/** Adds `late`. */
export const addLate = command({
  name: 'late',
  summary: 'list the prices that are late; exit code 1 if any',
  description:
    'Lists the prices whose due instant and grace (LATE_GRACE_MINUTES) are over without a value. ' +
    'A price without a calendar is judged by its frequency, with a generous allowance.',
  options: [
    repeatable('--market <slug>', 'only this market; repeat it for several'),
    option('--samples', 'sample prices too, which nobody publishes'),
    json(),
  ],
  help: `
For cron: it prints a table, and ends with exit code 1 if a price is late.

Examples:
  ${PROGRAM} late
  ${PROGRAM} late --market nickel --json`,
  async run({ market, samples }: LateOptions) {
    checkMarkets(market);
    const slugs = MARKETS.map(({ slug }) => slug).filter(
      (slug: MarketSlug) => market.length === 0 || market.includes(slug),
    );
    const { withDatabase } = await import('./database.ts');
    const { latePrices, watchedPrices } = await import('../prices/calendar/late.ts');
    const { referenceReader } = await import('../prices/market/references.ts');
    const { samplesReader } = await import('../prices/market/samples.ts');
    const { duePricesReader } = await import('../prices/calendar/due-prices.ts');
    const { readDataRevision } = await import('../db/revisions.ts');
    const late = await withDatabase(async ({ db, config }) => {
      const data = await readDataRevision(db, slugs);
      const readers = {
        ...{ db, references: referenceReader(1) },
        ...{ samples: samplesReader(db), duePrices: duePricesReader(db) },
      };
      const watched = await watchedPrices(readers, slugs, data, samples === true);
      const judgement = { nowMs: Date.now(), graceMinutes: config.LATE_GRACE_MINUTES };
      return latePrices(watched, judgement);
    });
    return {
      data: { late },
      print: () => printLate(late),
      exitCode: late.length > 0 ? EXIT.failed : EXIT.ok,
    };
  },
});
