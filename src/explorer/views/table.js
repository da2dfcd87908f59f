// The points of the chosen prices, newest first, with exactly the digits of the response.
import { NOTHING, unitText } from '../texts.js';
import { Component, classes, figure, html, ScrollTable } from '../ui.js';

/** Number of rows on a page. */
const PAGE = 200;

/** All points of all records, newest first; points of one day in the order of the records. */
function rowsOf(records) {
  const rows = records.flatMap((record, place) =>
    record.series.map((point) => ({ record, place, point })),
  );
  return rows.sort((a, b) => {
    if (a.point.date !== b.point.date) return a.point.date < b.point.date ? 1 : -1;
    return a.place - b.place;
  });
}

/** Number of digits after the decimal point, for alignment. */
const decimalsOf = (text) => (text?.includes('.') ? text.length - text.indexOf('.') : 0);

const textOf = (point, name) => point[name] ?? (point.conversionReason ? 'no rate' : NOTHING);

/** A number cell, shifted left by its missing digits to align decimal points. */
function Value({ point, name, title, most }) {
  const text = textOf(point, name);
  const isNumber = point[name] !== null;
  const room = isNumber ? most - decimalsOf(text) : 0;
  // A decimal point is narrower than a digit.
  const indent = room - (most > 0 && decimalsOf(text) === 0 ? 0.65 : 0);
  const style = isNumber && room > 0 ? { '--indent': `${indent}ch` } : undefined;
  return html`<td class=${isNumber ? 'number' : 'number quiet'} data-label=${title} style=${style}>${isNumber ? figure(text) : text}</td>`;
}

/** A text that no line break divides: a day or an instant. */
const unbroken = (text) => text && html`<span class="day">${text}</span>`;

/** Columns of rates and periods, shown if any point has a value. */
const FURTHER = [
  ['Rate of', 'date', ({ fx }) => unbroken(fx?.date)],
  ['Rate from', 'number', ({ fx }) => fx?.from],
  ['Rate to', 'number', ({ fx }) => fx?.to],
  ['Per', '', ({ fx }) => fx?.base],
  ['Mean rate', 'number', ({ fxMean }) => fxMean?.rate],
  ['Rate days', 'number', ({ fxMean }) => fxMean?.days],
  ['First rate', 'date', ({ fxMean }) => unbroken(fxMean?.firstDate)],
  ['Last rate', 'date', ({ fxMean }) => unbroken(fxMean?.lastDate)],
  ['VAT %', 'number', ({ vatRate }) => vatRate],
  ['Begins', 'date', ({ periodStart }) => unbroken(periodStart)],
  ['Observations', 'number', ({ observations }) => observations],
  ['Without a rate', 'number', ({ observationsLeftOut }) => observationsLeftOut],
];

/** @param records exact records of `exact` */
export class Table extends Component {
  state = { shown: PAGE };

  componentDidUpdate({ records }) {
    if (records !== this.props.records && this.state.shown !== PAGE) {
      this.setState({ shown: PAGE });
    }
  }

  render({ records }, { shown }) {
    if (this.records !== records) {
      this.records = records;
      this.rows = rowsOf(records);
    }
    const { rows } = this;
    if (rows.length === 0) return html`<p class="empty">No points in this range.</p>`;
    const units = [...new Set(records.map(unitText))];
    const unit = units.length === 1 ? html` <span class="unit">${units[0]}</span>` : '';
    const further = FURTHER.filter(([, , read]) =>
      rows.some(({ point }) => read(point) !== undefined),
    );
    const heads = [
      ['Date'],
      ...(records.length > 1 ? [['Code']] : []),
      ...['Low', 'Mid', 'High'].map((title) => [html`${title}${unit}`, 'number']),
      ...(units.length > 1 ? [['Unit']] : []),
      ...further,
      ['Corrections', 'number'],
      ['Published'],
    ];
    const page = rows.slice(0, shown);
    const most = Math.max(
      0,
      ...page.flatMap(({ point }) => [point.low, point.mid, point.high].map(decimalsOf)),
    );
    return html`
      <${ScrollTable} name="Points" kind="points stack" heads=${heads} isTall=${true}>
        ${page.map(
          ({ record, point }) => html`
            <tr key=${`${record.code} ${point.date}`} class=${point.corrections === '0' ? '' : 'corrected'}>
              <th scope="row" class="date">${point.date}</th>
              ${records.length > 1 && html`<td class="code">${record.code}</td>`}
              <${Value} point=${point} name="low" title="Low" most=${most} />
              <${Value} point=${point} name="mid" title="Mid" most=${most} />
              <${Value} point=${point} name="high" title="High" most=${most} />
              ${units.length > 1 && html`<td class="unit">${unitText(record)}</td>`}
              ${further.map(([title, kind, read]) => html`<td class=${classes('further', kind, read(point) === undefined && 'none')} data-label=${title}>${read(point) ?? NOTHING}</td>`)}
              <td class="number further" data-label="Corrections">${point.corrections}</td>
              <td class="date further" data-label="Published">${unbroken(point.publishedAt)}</td>
            </tr>
          `,
        )}
      </${ScrollTable}>
      <p class="more">
        <span class="quiet">${Math.min(shown, rows.length)} of ${rows.length} points</span>
        ${
          shown < rows.length &&
          html`<button type="button" onClick=${() => this.setState({ shown: shown + PAGE })}>Show ${PAGE} more</button>`
        }
      </p>
    `;
  }
}
