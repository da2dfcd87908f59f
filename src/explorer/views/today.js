// Late, due, newly published and recently corrected prices of the markets that the key can read.
import { askJson, askText, exact } from '../api.js';
import { dateOf, dayOf, lastFriday, minuteOf, today } from '../dates.js';
import { addressOf, EMPTY, linkTo } from '../link.js';
import { Loaded } from '../loaded.js';
import { RefusalNote, RetryText } from '../notices.js';
import { counted, unitText } from '../texts.js';
import { Component, figure, html } from '../ui.js';
import { pointText } from './corrections/point.js';
import { correctionRequest } from './corrections/recent.js';
import { newestOf } from './results.js';

/** Days until which a price counts as due soon. */
const SOON_DAYS = 7;

/** Entries of a list before and after "Show all". */
const FIRST = 3;
const ALL = 500;

/** Most changes of the request for recent corrections. */
const CHANGES = 1_000;

/** The clock of this browser is looked at again after this time. */
const TICK_MS = 30_000;

/** On a narrow screen the lists are folded to keep the markets in view. */
const narrow = matchMedia('(max-width: 900px)');

const dueRequest = (market) =>
  addressOf('v3/calendar', [
    ['market', market],
    ['from', today()],
    ['to', today()],
  ]);

/** The prices of all markets with the instants that decide whether they are late. */
async function duePrices(markets, signal) {
  try {
    return (await askJson(dueRequest(null), signal)).data;
  } catch (error) {
    // One answer has a limited number of due days.
    if (error.status !== 400) throw error;
    const answers = markets.map(({ slug }) => askJson(dueRequest(slug), signal));
    return (await Promise.all(answers)).flatMap(({ data }) => data);
  }
}

const byText = (textOf) => (a, b) => textOf(a).localeCompare(textOf(b));

/** True if a price is late by the clock of this browser. */
const isLate = ({ lateFrom }, nowMs) => lateFrom !== null && Date.parse(lateFrom) < nowMs;

/** The prices of each list. Nobody publishes sample prices. */
function listsOf(prices, nowMs) {
  const published = prices.filter(({ sample }) => !sample);
  const day = new Date(nowMs).toISOString().slice(0, 10);
  const soon = dateOf(dayOf(day) + SOON_DAYS);
  return {
    late: published
      .filter((price) => isLate(price, nowMs))
      .sort(byText(({ lateFrom }) => lateFrom))
      .reverse(),
    due: published
      .filter((price) => price.nextExpectedAt !== null && !isLate(price, nowMs))
      .filter(({ nextExpectedAt }) => nextExpectedAt.slice(0, 10) < soon)
      .sort(byText(({ nextExpectedAt }) => nextExpectedAt)),
    news: prices
      .filter(({ latestPublishedAt }) => latestPublishedAt?.slice(0, 10) === day)
      .sort(byText(({ latestPublishedAt }) => latestPublishedAt))
      .reverse(),
    closed: Object.entries(
      Object.groupBy(
        published.filter(({ days }) => days.some(({ status }) => status === 'closed')),
        ({ days }) => days.find(({ status }) => status === 'closed').holiday,
      ),
    ),
    samples: prices.length - published.length,
  };
}

/** The style sheet of this part, which only the overview needs. */
const STYLE = new URL('../today.css', import.meta.url).href;

const recordOf = ({ market, code }) => linkTo({ ...EMPTY, market, code });

const Name = ({ price }) => html`
  <a href=${recordOf(price)}><bdi>${price.name ?? price.code}</bdi></a>${' '}
  ${price.name && html`<span class="quiet small">${price.code}</span>`}
`;

const LateText = ({ price }) =>
  price.lateBy === 'frequency'
    ? html`newest of <span class="day">${price.lastAssessedAt}</span>${' '}
        <span class="mark" title="No calendar: judged by its frequency, with a generous allowance">by frequency</span>`
    : html`due <span class="day">${minuteOf(price.nextExpectedAt)}</span>`;

/** A list with a headline, open on a wide screen. The first entries are shown. */
class Card extends Component {
  state = { isAll: false };

  render({ title, headline, tone, entries, entry, more }, { isAll }) {
    const shown = entries.slice(0, isAll ? ALL : FIRST);
    const line = html`<strong>${title}</strong> <span class=${tone}>${headline}</span>`;
    if (entries.length === 0 && !more) return html`<div class="card"><p>${line}</p></div>`;
    return html`
      <details class="card" open=${!narrow.matches}>
        <summary>${line}</summary>
        <ul>${shown.map((each) => html`<li key=${`${each.market} ${each.code} ${each.seq}`}>${entry(each)}</li>`)}</ul>
        ${
          shown.length < Math.min(entries.length, ALL) &&
          html`<button type="button" onClick=${() => this.setState({ isAll: true })}>Show all ${Math.min(entries.length, ALL)}</button>`
        }
        ${more}
      </details>
    `;
  }
}

/** The prices that were published today, the first of them with their newest values. */
class Published extends Loaded {
  keyOf({ news }) {
    return JSON.stringify(
      news.slice(0, FIRST).map(({ code, latestPublishedAt }) => [code, latestPublishedAt]),
    );
  }

  async load({ news }, signal) {
    return news.length === 0 ? new Map() : newestOf(news.slice(0, FIRST), null, signal);
  }

  valueOf({ market, code }) {
    const record = this.state.data?.get(`${market} ${code}`);
    const latest = record?.summary.latest;
    return latest && html`<strong>${figure(latest.mid)}</strong> ${unitText(record)} of `;
  }

  render({ news }) {
    return html`
      <${Card}
        title="Published today"
        headline=${news.length === 0 ? 'nothing yet' : counted(news.length, 'price')}
        entries=${news}
        entry=${(price) => html`<${Name} price=${price} /> ${this.valueOf(price)}<span class="day">${price.lastAssessedAt}</span>`}
      />
    `;
  }
}

const CorrectionText = ({ change }) => html`
  <${Name} price=${change} />
  <span class="day">${change.date}</span>: <del>${pointText(change.before)}</del> → ${pointText(change.after)}
`;

const Corrected = ({ changes, hasMore }) => {
  const isNone = changes.length === 0;
  const count = hasMore
    ? `more than ${counted(CHANGES, 'point')}`
    : counted(changes.length, 'point');
  const spans = html`
    <p class="small">
      <a href=${linkTo({ ...EMPTY, corrections: 'since', from: lastFriday() })}>Since Friday</a>${' '}
      <a href=${linkTo({ ...EMPTY, corrections: 'week' })}>All of 7 days</a>
    </p>
  `;
  return html`
    <${Card}
      title="Corrected or withdrawn"
      headline=${isNone ? 'no point in 7 days' : `${count} in 7 days`}
      entries=${hasMore ? [] : changes.slice(0, FIRST)}
      entry=${(change) => html`<${CorrectionText} change=${change} />`}
      more=${spans}
    />
  `;
};

export class Today extends Loaded {
  componentDidMount() {
    super.componentDidMount();
    this.timer = setInterval(() => this.setState({}), TICK_MS);
  }

  componentWillUnmount() {
    clearInterval(this.timer);
    super.componentWillUnmount();
  }

  keyOf() {
    return today();
  }

  async load({ markets }, signal) {
    const week = new Date(Date.now() - SOON_DAYS * 86_400_000).toISOString();
    const request = correctionRequest([['since', week]], null, CHANGES);
    const [prices, feed] = await Promise.all([
      duePrices(markets, signal),
      askText(request, signal),
    ]);
    const { $metadata, data } = exact(feed);
    const changes = data.filter(({ date }) => date).reverse();
    return { prices, changes, hasMore: String($metadata.hasMore) === 'true' };
  }

  render({ app }, { data, error }) {
    if (error) {
      return html`<h2>Today</h2><${RefusalNote} error=${error} /><${RetryText} error=${error} />`;
    }
    if (data === null) return html`<h2>Today</h2><p class="quiet">Asking for what is due…</p>`;
    const { late, due, news, closed, samples } = listsOf(data.prices, Date.now());
    return html`
      <link rel="stylesheet" href=${STYLE} />
      <div class="row spread">
        <h2>Today <span class="quiet day">${today()} (UTC)</span></h2>
        <a class="button main" href=${linkTo({ ...EMPTY, calculate: '{}' })}>Calculate</a>
      </div>
      <div class="cards">
        <${Card}
          title="Late"
          tone=${late.length > 0 ? 'old' : ''}
          headline=${late.length === 0 ? 'no price' : counted(late.length, 'price')}
          entries=${late}
          entry=${(price) => html`<${Name} price=${price} /> <${LateText} price=${price} />`}
        />
        <${Card}
          title="Due"
          headline=${`${due.length === 0 ? 'no price' : counted(due.length, 'price')} in ${SOON_DAYS} days`}
          entries=${due}
          entry=${(price) => html`<${Name} price=${price} /> <span class="day">${minuteOf(price.nextExpectedAt)}</span>`}
        />
        <${Published} app=${app} news=${news} />
        <${Corrected} changes=${data.changes} hasMore=${data.hasMore} />
      </div>
      ${closed.map(
        ([holiday, all]) =>
          html`<p class="quiet small">Closed today, ${holiday}: ${counted(all.length, 'price')}.</p>`,
      )}
      ${
        samples > 0 &&
        html`<p class="quiet small">${counted(samples, 'sample price')}, which nobody publishes, ${samples === 1 ? 'is' : 'are'} not judged.</p>`
      }
    `;
  }
}
