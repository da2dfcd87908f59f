// The chart with its read-out. Pointer and keyboard move a cursor, which screen readers announce.
import { draw } from '../chart.js';
import { dateOf } from '../dates.js';
import { linkTo } from '../link.js';
import { Marks } from '../notices.js';
import { indexed, lineOf, strokeOf } from '../series.js';
import { NOTHING, unitText } from '../texts.js';
import {
  createRef,
  Day,
  darkSetting,
  Fitted,
  figure,
  hiddenTitle,
  html,
  Kind,
  Later,
  ScrollTable,
} from '../ui.js';
import { themeOf } from './colours-of-chart.js';

/** Cursor steps by key, in days of the chart. */
const STEPS = {
  ArrowLeft: -1,
  ArrowDown: -1,
  ArrowRight: 1,
  ArrowUp: 1,
  PageDown: -20,
  PageUp: 20,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
};

const cutNotes = async () => (await import('./cut-periods.js')).CutNotes;

const LABEL_LENGTH = 18;

const shortened = (text) =>
  text.length > LABEL_LENGTH ? `${text.slice(0, LABEL_LENGTH - 1)}…` : text;

/** The value of a price at the cursor, for screen readers. */
const spoken = (record, point) => {
  const unit = unitText(record);
  if (!point || point.mid === null) return `${record.code}: no price`;
  const range = point.low === null ? '' : `, low ${point.low}, high ${point.high}`;
  const corrected = point.corrections === '0' ? '' : ', corrected';
  return `${record.code}: mid ${point.mid}${range} ${unit}${corrected}`;
};

const replaced = async () => (await import('./replaced.js')).Replaced;

const ReadOutRow = ({
  entry,
  among,
  place,
  point,
  change,
  lacking,
  isAtCursor,
  view,
  app,
  isOnly,
}) => {
  const { market, record } = entry;
  const { stroke, dash } = strokeOf(place, darkSetting.matches);
  const isPublished = !view.currency && !view.unit && !view.average;
  const remaining = view.prices.filter(
    (each) => each.market !== market || each.code.toLowerCase() !== record.code.toLowerCase(),
  );
  const page = linkTo({ ...view, prices: [], market, code: record.code, filters: {} });
  const value = (name) => {
    const text = point?.[name];
    if (text !== null && text !== undefined) return figure(text);
    if (name !== 'mid') return NOTHING;
    if (point?.conversionReason) return 'no rate';
    return isAtCursor ? 'no price' : NOTHING;
  };
  return html`
    <tr>
      <td class="swatch">
        <svg width="26" height="10" aria-hidden="true">
          <path d="M0 5H26" stroke=${stroke} stroke-width="3" stroke-dasharray=${dash?.join(' ')} />
        </svg>
        <span>${place + 1}</span>
      </td>
      <th scope="row" class="wide">
        <a class="plain" href=${page}><bdi>${record.name}</bdi></a>
        <${Kind} record=${record} />
        <${Marks} record=${record} among=${among} />
        ${change && html`<span class="mark">${change}</span>`}
        ${lacking && html`<span class="mark">no rate yet for ${lacking}</span>`}
        ${
          point &&
          point.corrections !== '0' &&
          html`<${Later}
            load=${replaced}
            app=${app}
            key=${[record.code, point.date, point.corrections, view.asOf, isPublished].join(' ')}
            market=${market}
            code=${record.code}
            point=${point}
            asOf=${view.asOf}
            isPublished=${isPublished}
          />`
        }
      </th>
      <td class="code">${record.code}</td>
      <td class="number" data-label="Low">${value('low')}</td>
      <td class="number strong" data-label="Mid">${value('mid')}</td>
      <td class="number" data-label="High">${value('high')}</td>
      <td class="unit">${unitText(record)}</td>
      <td class="date">
        ${
          isAtCursor || view.to || !point
            ? (point?.date ?? NOTHING)
            : html`<${Day} date=${point.date} frequency=${record.frequency} asOf=${view.asOf} />`
        }
      </td>
      <td class="remove">
        ${
          !isOnly &&
          html`<button
            type="button"
            class="bare"
            aria-label=${`Remove ${record.code}`}
            onClick=${() => app.change({ prices: remaining })}
          >
            ×
          </button>`
        }
      </td>
    </tr>
  `;
};

const HEADS = [
  [hiddenTitle('Line')],
  ['Price', 'wide'],
  ['Code', 'code'],
  ['Low', 'number'],
  ['Mid', 'number'],
  ['High', 'number'],
  ['Unit', 'unit'],
  ['Date'],
  [hiddenTitle('Remove')],
];

/** The values of each price at the cursor, or its newest values. */
const ReadOut = ({ entries, comparing, day, view, app, isRead }) => {
  const date = day === null ? null : dateOf(day);
  const pair = comparing?.pairOf(entries, view.compare).pair;
  // Without a cursor, the newest value with a rate is shown, and a later day without one beside it.
  const pointOf = (entry) =>
    date === null ? (entry.newestWithRate() ?? entry.newest()) : entry.pointOf(date);
  const lackingOf = (entry) => {
    if (date !== null) return null;
    const newest = entry.newest();
    return newest?.mid === null && entry.newestWithRate() ? newest.date : null;
  };
  return html`
    <${ScrollTable} name="Values at the cursor" kind="list readout stack" heads=${HEADS}>
      ${entries.map(
        (entry, place) => html`
          <${ReadOutRow}
            key=${`${entry.market} ${entry.record.code}`}
            entry=${entry}
            among=${entries.map(({ record }) => record)}
            place=${place}
            point=${isRead ? pointOf(entry) : undefined}
            change=${isRead && view.compare === 'year' && comparing?.yearText(entry, pointOf(entry))}
            lacking=${isRead ? lackingOf(entry) : null}
            isAtCursor=${isRead && date !== null}
            view=${view}
            app=${app}
            isOnly=${entries.length === 1}
          />
        `,
      )}
      ${isRead && pair && html`<${comparing.PairRow} pair=${pair} compare=${view.compare} date=${date} />`}
    </${ScrollTable}>
  `;
};

/**
 * The chart of the chosen prices.
 * @param entries for each price `market`, `record` (numbers for drawing), `pointOf(date)` and
 *   `newest()` (exact points)
 * @param isRead true once the exact points are parsed, which happens after the first paint
 * @param onDrawn called with `picture`, the function that draws the lines for a picture
 */
export class ChartView extends Fitted {
  state = { ...this.state, day: null, notes: [] };
  place = createRef();

  componentDidMount() {
    super.componentDidMount();
    this.redraw();
    this.watcher = new ResizeObserver(([{ contentRect }]) => {
      if (Math.round(contentRect.width) !== this.width) this.redraw();
    });
    this.watcher.observe(this.place.current);
    darkSetting.addEventListener('change', this.repaint);
  }

  componentDidUpdate({ entries, view }) {
    const now = this.props.view;
    const isSame = ['index', 'log', 'bands', 'compare'].every((name) => view[name] === now[name]);
    if (entries !== this.props.entries || !isSame) this.redraw();
  }

  componentWillUnmount() {
    super.componentWillUnmount();
    this.watcher.disconnect();
    darkSetting.removeEventListener('change', this.repaint);
    this.chart?.destroy();
  }

  /** Redraws the chart in the colours of the theme. */
  repaint = () => {
    this.redraw();
    this.forceUpdate();
  };

  /** The lines of a picture with their full names, and its colours. */
  picture = (isDark) => {
    const element = this.place.current;
    const theme = themeOf(element, isDark);
    return { lines: this.lines(isDark, theme.ink, true).lines, theme };
  };

  /**
   * The lines on the scale of the view, and notes on values that cannot be drawn.
   * @param isNamed true for full names at the ends of lines on a narrow screen too
   */
  lines(isDark = darkSetting.matches, ink = themeOf(this.place.current).ink, isNamed = false) {
    const { entries, view, comparing } = this.props;
    const notes = [];
    const isNarrow = this.width < 500;
    const lines = entries.flatMap((entry, place) => {
      if (entry.record.series.length === 0) {
        const { code, lastAssessedAt } = entry.record;
        notes.push(
          `${code} has no value in this range; its newest is of ${lastAssessedAt ?? NOTHING}.`,
        );
        return [];
      }
      const line = lineOf(entry.record, view.average);
      const scaled = this.scaled(line, entry);
      if (scaled === null) {
        notes.push(`${line.code} has no index: its first value here is missing or not above zero.`);
        return [];
      }
      if (view.log && scaled.mid.some((each) => each !== null && each <= 0)) {
        notes.push(`${line.code} has values that are not above zero; a log scale leaves them out.`);
      }
      const text = isNarrow && !isNamed ? String(place + 1) : shortened(line.label);
      return [{ ...scaled, ...strokeOf(place, isDark), text }];
    });
    const { pair, why } = comparing?.pairOf(entries, view.compare) ?? {};
    if (why) notes.push(why);
    if (pair) {
      const line = comparing.lineOfPair(pair, view.compare, view.average);
      if (line.days.length > 0) lines.push({ ...line, stroke: ink, text: line.label });
      else notes.push('The two prices have no day in common.');
    }
    return { lines, notes };
  }

  /** The line of a price on the scale of the view; null if it has no index. */
  scaled(line, entry) {
    const { view, comparing } = this.props;
    if (view.compare === 'year') return comparing.lineOfYear(line, entry);
    return view.index ? indexed(line) : line;
  }

  redraw() {
    const element = this.place.current;
    this.width = Math.round(element.clientWidth);
    if (this.width === 0) return;
    this.chart?.destroy();
    const { lines, notes } = this.lines();
    const { view } = this.props;
    this.chart = draw(lines, {
      element,
      width: this.width,
      theme: themeOf(element),
      log: view.log,
      bands: view.bands,
      labels: true,
      onCursor: (day) => this.setState({ day }),
      onZoom: (range) => this.props.app.change(range ?? { from: null, to: null }),
    });
    // Exposes the drawn lines and axes to code outside the page, such as tests.
    element.chart = this.chart;
    this.at = null;
    this.setState({ day: null, notes });
    this.props.onDrawn?.(this.picture);
  }

  move = (event) => {
    const step = STEPS[event.key];
    if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const last = this.chart.days.length - 1;
    if (last < 0) return;
    event.preventDefault();
    const { day } = this.state;
    const at = day === null ? (step < 0 ? last + 1 : -1) : this.chart.days.indexOf(day);
    const next = Math.max(0, Math.min(last, at + step));
    this.chart.moveTo(next);
    this.setState({ day: this.chart.days[next] });
  };

  /** The cursor as text: screen readers announce the value of a slider after each move. */
  spoken() {
    const { day } = this.state;
    if (day === null) return 'No day chosen';
    const date = dateOf(day);
    const each = this.props.entries.map(({ record, pointOf }) => spoken(record, pointOf(date)));
    return `${date}. ${each.join('. ')}`;
  }

  render({ entries, comparing, view, app, isRead }, { day, notes, isPhone }) {
    const days = this.chart?.days ?? [];
    const readOut = html`
      <${ReadOut} key="read" entries=${entries} comparing=${comparing} day=${day} view=${view} app=${app} isRead=${isRead} />
    `;
    return html`
      ${!isPhone && readOut}
      ${view.average && html`<${Later} load=${cutNotes} app=${app} entries=${entries} view=${view} />`}
      ${notes.map((note) => html`<p class="note" role="status">${note}</p>`)}
      <div
        key="chart"
        class="chart"
        ref=${this.place}
        tabindex="0"
        role="slider"
        aria-label="Chart: the arrow keys, Page, Home and End move the cursor"
        aria-valuemin="0"
        aria-valuemax=${Math.max(0, days.length - 1)}
        aria-valuenow=${day === null ? 0 : days.indexOf(day)}
        aria-valuetext=${this.spoken()}
        onKeyDown=${this.move}
      />
      ${isPhone && readOut}
    `;
  }
}
