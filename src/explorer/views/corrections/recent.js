// Recent corrections and withdrawals in the markets that the key can read.
import { askText, exact, onForget } from '../../api.js';
import { isDate, lastFriday, minuteOf, today } from '../../dates.js';
import { addressOf, EMPTY, linkTo } from '../../link.js';
import { Loaded } from '../../loaded.js';
import { Failed } from '../../notices.js';
import { NOTHING } from '../../texts.js';
import { html, ScrollTable } from '../../ui.js';
import { pricesOf } from '../prices-of-codes.js';
import { pointText } from './point.js';

/** The days of each span, and its name. A visit lies a week back where none is remembered. */
const SPANS = {
  visit: { name: 'Since your last visit', days: 7 },
  week: { name: 'Last 7 days', days: 7 },
  month: { name: 'Last 30 days', days: 30 },
  since: { name: 'Since Friday' },
};

const SEEN = 'explorer-corrections';

/** Most changes of a page of the feed, and most pages of one load. */
const PAGE = 1_000;
const PAGES_MAX = 10;

/** Rows of the table: the newest ones. */
const SHOWN_MAX = 500;

/** The position of the feed at the last visit, and its time; null without one. */
function lastVisit() {
  try {
    const { seq, at } = JSON.parse(localStorage.getItem(SEEN));
    return typeof seq === 'string' && !Number.isNaN(Date.parse(at)) ? { seq, at } : null;
  } catch {
    return null;
  }
}

/** The last visit, as it was when the page was loaded. */
let visit = lastVisit();

/** Stores the position of this visit. Does nothing if the browser forbids it. */
function remember(seq) {
  try {
    localStorage.setItem(SEEN, JSON.stringify({ seq, at: new Date().toISOString() }));
  } catch {}
}

// Another key may read other markets, for which the position says nothing.
onForget(() => {
  visit = null;
  try {
    localStorage.removeItem(SEEN);
  } catch {}
});

const daysAgo = (days) => new Date(Date.now() - days * 86_400_000).toISOString();

/** The first day of the span `since`: that of the link, else Friday. */
const firstDay = ({ from }) => from ?? lastFriday();

/** The begin of a span, as parameters of the feed. */
function startOf(view) {
  const { corrections: span } = view;
  if (span === 'since') return [['since', `${firstDay(view)}T00:00:00Z`]];
  return span === 'visit' && visit !== null
    ? [['after', visit.seq]]
    : [['since', daysAgo(SPANS[span].days)]];
}

/** The request for a page of corrections and withdrawals. */
export const correctionRequest = (start, market, limit) =>
  addressOf('v3/changes', [
    ...start,
    ['market', market],
    ['operations', 'corrected'],
    ['operations', 'withdrawn'],
    ['limit', limit],
  ]);

const Row = ({ change, name }) => {
  const { recordedAt, market, code, date, before, after } = change;
  const record = linkTo({ ...EMPTY, market, code });
  return html`
    <tr>
      <td class="date">${minuteOf(recordedAt)}</td>
      <th scope="row"><a href=${record}>${code}</a>${name && html` <bdi class="quiet small">${name}</bdi>`}</th>
      <td class="date" data-label="Point of">${date ?? NOTHING}</td>
      <td class="figure" data-label="Before"><del>${date ? pointText(before) : before.name}</del></td>
      <td class="figure" data-label="After">${pointText(after)}</td>
    </tr>
  `;
};

/** @param view `corrections` is a span of `SPANS`, `market` one market or null for all */
export class CorrectedView extends Loaded {
  keyOf({ view: { corrections, market, from } }) {
    return JSON.stringify([corrections, market, from]);
  }

  async load({ view }, signal) {
    const { market } = view;
    const changes = [];
    let start = startOf(view);
    for (let pages = 1; ; pages += 1) {
      const address = correctionRequest(start, market, PAGE);
      const { $metadata, data } = exact(await this.asked(address, signal));
      changes.push(...data);
      start = [['after', $metadata.nextSeq]];
      const hasMore = String($metadata.hasMore) === 'true';
      if (hasMore && pages < PAGES_MAX) continue;
      if (!hasMore && market === null) remember($metadata.nextSeq);
      changes.reverse();
      const codes = changes.slice(0, SHOWN_MAX).map(({ code }) => code);
      return { changes, hasMore, prices: await pricesOf(codes, signal) };
    }
  }

  /** A position of another epoch of the data is forgotten, and the load begins a week ago. */
  async asked(address, signal) {
    try {
      return await askText(address, signal);
    } catch (error) {
      if (error.code !== 'unknown_revision' || visit === null) throw error;
      visit = null;
      return askText(address.replace(/after=[^&]*/, `since=${daysAgo(SPANS.visit.days)}`), signal);
    }
  }

  render({ app, view, markets }, { data, error }) {
    const { corrections: span, market } = view;
    const name = markets.find(({ slug }) => slug === market)?.name;
    const since = span === 'visit' && visit !== null ? `since ${minuteOf(visit.at)}` : null;
    return html`
      <section class="panel">
        <h1>Corrections${name && `: ${name}`}</h1>
        <p class="choices">
          ${Object.entries(SPANS).map(
            ([each, { name: label }]) => html`
              <a
                href=${linkTo({ ...EMPTY, market, corrections: each, from: each === 'since' ? lastFriday() : null })}
                aria-current=${each === span ? 'page' : null}
              >${label}</a>${' '}
            `,
          )}
          <label class="field">
            Since${' '}
            <input
              type="date"
              max=${today()}
              value=${span === 'since' ? firstDay(view) : ''}
              onChange=${({ target: { value } }) => isDate(value) && app.change({ corrections: 'since', from: value })}
            />
          </label>
        </p>
        ${
          span === 'visit' &&
          html`<p class="quiet">
            ${since ?? 'This browser remembers no earlier visit: these are the last 7 days.'}
          </p>`
        }
        ${error && html`<${Failed} error=${error} again=${this.reload} />`}
        ${!error && data === null && html`<p class="quiet">Looking for corrections…</p>`}
        ${data?.changes.length === 0 && html`<p>No point was corrected or withdrawn.</p>`}
        ${
          data?.changes.length > 0 &&
          html`
            <p class="quiet">
              ${data.changes.length > SHOWN_MAX ? `The newest ${SHOWN_MAX} of ` : ''}${data.changes.length}
              ${data.hasMore ? ' changes; later ones are not shown: choose one market' : ' changes'}
            </p>
            <${ScrollTable}
              name="Corrections"
              kind="list corrections stack"
              heads=${[['Recorded'], ['Price'], ['Point of'], ['Before'], ['After']]}
            >
              ${data.changes
                .slice(0, SHOWN_MAX)
                .map(
                  (change) =>
                    html`<${Row} key=${change.seq} change=${change} name=${data.prices.find(({ code }) => code === change.code)?.name} />`,
                )}
            </${ScrollTable}>
          `
        }
        <p><a href=${linkTo({ ...EMPTY, market })}>${name ?? 'All markets'}</a></p>
      </section>
    `;
  }
}
