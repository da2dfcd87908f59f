// The points of the chosen prices, newest first, with exactly the digits of the response, and the
// conversion receipt of each price.
import { NOTHING, unitText } from '../texts.js';
import { Component, html } from '../ui.js';

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

const textOf = (point, name) =>
  point[name] ?? (point.conversionReason === 'no-rate' ? 'no rate' : NOTHING);

/** A number cell, shifted left by its missing digits to align decimal points. */
function Value({ point, name, most }) {
  const text = textOf(point, name);
  const isNumber = point[name] !== null;
  const room = isNumber ? most - decimalsOf(text) : 0;
  // A decimal point is narrower than a digit.
  const indent = room - (most > 0 && decimalsOf(text) === 0 ? 0.65 : 0);
  const style =
    isNumber && room > 0 ? { paddingRight: `calc(var(--cell) + ${indent}ch)` } : undefined;
  return html`<td class=${isNumber ? 'number' : 'number quiet'} style=${style}>${text}</td>`;
}

/** Columns of rates and periods, shown if any point has a value. */
const FURTHER = [
  ['Rate of', 'date', ({ fx }) => fx?.date],
  ['Rate from', 'number', ({ fx }) => fx?.from],
  ['Rate to', 'number', ({ fx }) => fx?.to],
  ['Per', '', ({ fx }) => fx?.base],
  ['Begins', 'date', ({ periodStart }) => periodStart],
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
    const page = rows.slice(0, shown);
    const most = Math.max(
      0,
      ...page.flatMap(({ point }) => [point.low, point.mid, point.high].map(decimalsOf)),
    );
    return html`
      <div class="scroll tall" tabindex="0" role="region" aria-label="Points">
        <table class="points">
          <thead>
            <tr>
              <th scope="col">Date</th>
              ${records.length > 1 && html`<th scope="col">Code</th>`}
              <th scope="col" class="number">Low${unit}</th>
              <th scope="col" class="number">Mid${unit}</th>
              <th scope="col" class="number">High${unit}</th>
              ${units.length > 1 && html`<th scope="col">Unit</th>`}
              ${further.map(([title, kind]) => html`<th scope="col" class=${kind}>${title}</th>`)}
              <th scope="col" class="number">Corrections</th>
              <th scope="col">Published</th>
            </tr>
          </thead>
          <tbody>
            ${page.map(
              ({ record, point }) => html`
                <tr key=${`${record.code} ${point.date}`} class=${point.corrections === '0' ? '' : 'corrected'}>
                  <th scope="row" class="date">${point.date}</th>
                  ${records.length > 1 && html`<td class="code">${record.code}</td>`}
                  <${Value} point=${point} name="low" most=${most} />
                  <${Value} point=${point} name="mid" most=${most} />
                  <${Value} point=${point} name="high" most=${most} />
                  ${units.length > 1 && html`<td class="unit">${unitText(record)}</td>`}
                  ${further.map(([, kind, read]) => html`<td class=${kind}>${read(point) ?? NOTHING}</td>`)}
                  <td class="number">${point.corrections}</td>
                  <td class="date">${point.publishedAt}</td>
                </tr>
              `,
            )}
          </tbody>
        </table>
      </div>
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

const WORDS = {
  converted: 'converted',
  partial: 'converted in part',
  unchanged: 'unchanged',
  'not-applicable': 'not applicable',
  refused: 'refused',
};

const quotationText = (quotation) =>
  quotation ? [quotation.currency, quotation.unitOfMeasure].filter(Boolean).join(' per ') : NOTHING;

const factorText = (factor) => (factor ? `× ${factor.multiply} ÷ ${factor.divide}` : NOTHING);

/** @param records exact records with a conversion each */
export const Receipt = ({ records }) => html`
  <section class="panel flush">
    <h2>Conversion</h2>
    <div class="scroll" tabindex="0" role="region" aria-label="Conversion receipts">
      <table class="list receipt">
        <thead>
          <tr>
            <th scope="col">Code</th>
            <th scope="col">Status</th>
            <th scope="col">Reason</th>
            <th scope="col">From</th>
            <th scope="col">To</th>
            <th scope="col">Factor</th>
            <th scope="col">Rates of</th>
            <th scope="col">Rounding</th>
          </tr>
        </thead>
        <tbody>
          ${records.map(
            ({
              code,
              conversion: { status, reason, from, to, unitFactor, source, rounding },
            }) => html`
              <tr key=${code}>
                <th scope="row" class="code">${code}</th>
                <td><span class=${`status ${status}`} title=${WORDS[status]}>${status}</span></td>
                <td>${reason ?? NOTHING}</td>
                <td>${quotationText(from)}</td>
                <td>${quotationText(to)}</td>
                <td class="figure">${factorText(unitFactor)}</td>
                <td>${source ?? NOTHING}</td>
                <td>${rounding ?? NOTHING}</td>
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  </section>
`;
