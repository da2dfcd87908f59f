// Finds the values that corrections replaced, by requests for the same points with earlier `asOf`.

import { askText, exact } from './api.js';
import { endOf } from './dates.js';
import { addressOf } from './link.js';

/** Maximum number of requests of one search. The burst of a key is sixty. */
const REQUESTS_MAX = 40;

/** Microseconds of an instant such as `2026-07-02T09:00:00.123456Z`. */
const microsOf = (instant) => {
  const [, fraction = ''] = /\.(\d+)Z$/.exec(instant) ?? [];
  const seconds = Date.parse(`${instant.slice(0, 19)}Z`) / 1_000;
  return BigInt(seconds) * 1_000_000n + BigInt(fraction.padEnd(6, '0'));
};

const instantOf = (micros) => {
  const second = new Date(Number(micros / 1_000_000n) * 1_000).toISOString().slice(0, 19);
  return `${second}.${String(micros % 1_000_000n).padStart(6, '0')}Z`;
};

const BEFORE_ALL = '1971-01-01T00:00:00Z';

/** A bisection over commits for the corrections of one price. */
class Bisection {
  requestsLeft = REQUESTS_MAX;
  found = [];
  /** True if the sum of corrections fell, because a withdrawn point was published again. */
  hasFallen = false;

  constructor({ market, code, from, to, signal }) {
    Object.assign(this, { market, code, from, to, signal });
  }

  /** The points as known at an instant; `micros` is the time of the commit. */
  async at(instant) {
    this.requestsLeft -= 1;
    const address = addressOf(`v3/prices/${this.market}`, [
      ['codes', this.code],
      ['dateFrom', this.from],
      ['dateTo', this.to],
      ['includeSeries', 'true'],
      ['asOf', instant && endOf(instant)],
    ]);
    const { $metadata, data } = exact(await askText(address, this.signal));
    const points = new Map(data[0]?.series.map((point) => [point.date, point]));
    // Counts only the points of the first response: a withdrawn point loses its corrections.
    this.dates ??= [...points.keys()];
    const sum = this.dates.reduce(
      (all, date) => all + Number(points.get(date)?.corrections ?? 0),
      0,
    );
    if (this.last && sum > this.last.sum !== microsOf($metadata.asOf) > this.last.micros) {
      this.hasFallen ||= sum !== this.last.sum;
    }
    this.last = { micros: microsOf($metadata.asOf), sum };
    return { micros: microsOf($metadata.asOf), points, sum, warnings: $metadata.warnings };
  }

  justBefore = ({ micros }) => this.at(instantOf(micros - 1n));

  /** The earliest revision with the sum of `later`, and the revision before it. */
  async firstLike(earlier, later) {
    let low = earlier.micros;
    let first = later;
    while (this.requestsLeft > 0) {
      const before = await this.justBefore(first);
      if (before.sum !== later.sum) return { first, before };
      first = before;
      const middle = await this.at(instantOf((low + first.micros) / 2n));
      if (middle.sum === later.sum) first = middle;
      else low = (low + first.micros) / 2n;
    }
    return null;
  }

  /** Finds each commit between two revisions that corrected a point, the latest first. */
  async between(earlier, later) {
    let revision = later;
    while (revision.sum > earlier.sum && this.requestsLeft > 0) {
      const step = await this.firstLike(earlier, revision);
      if (step === null) return false;
      this.record(step.before, step.first);
      revision = step.before;
    }
    return revision.sum <= earlier.sum;
  }

  record(before, after) {
    for (const [date, point] of after.points) {
      const old = before.points.get(date);
      if (old && old.corrections !== point.corrections) {
        this.found.push({ date, recordedAt: instantOf(after.micros), before: old, after: point });
      }
    }
  }
}

async function searched(question) {
  const search = new Bisection(question);
  const now = await search.at(question.asOf);
  if (now.sum === 0) return { corrections: [], isWhole: true };
  const { warnings } = await search.at(BEFORE_ALL);
  const since = warnings.find(({ existsSince }) => existsSince)?.existsSince;
  const first = since ? await search.at(since) : { micros: 0n, sum: 0, points: new Map() };
  const isWhole = await search.between(first, now);
  return { corrections: search.found, isWhole: isWhole && !search.hasFallen };
}

const known = new Map();

/**
 * The corrections of the points of a price, the latest first.
 * @param question `market`, `code`, the days `from` and `to` of the points, `asOf` or null, and
 *   `count`, the number of corrections of the points
 * @returns `corrections`: `date`, `recordedAt`, and the points `before` and `after`; `isWhole` is
 *   false if the search stopped before the earliest correction
 */
export function correctionsOf(question, signal) {
  const { market, code, from, to, asOf, count } = question;
  const key = JSON.stringify([market, code, from, to, asOf, count]);
  if (!known.has(key)) {
    const search = searched({ ...question, signal });
    known.set(key, search);
    search.catch(() => known.delete(key));
  }
  return known.get(key);
}
