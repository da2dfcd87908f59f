// The corrections of a price over time.
import { minuteOf } from '../../dates.js';
import { correctionsOf } from '../../history.js';
import { Loaded } from '../../loaded.js';
import { Failed } from '../../notices.js';
import { html, ScrollTable } from '../../ui.js';
import { pointText } from './point.js';

const HEADS = [['Recorded'], ['Point of'], ['Before'], ['After']];

/** @param points exact points of the price, with corrected ones */
export class Corrections extends Loaded {
  keyOf({ market, code, asOf }) {
    return JSON.stringify([market, code, asOf, this.question().count]);
  }

  question() {
    const corrected = this.props.points.filter(({ corrections }) => corrections !== '0');
    const { market, code, asOf } = this.props;
    const count = corrected.reduce((sum, { corrections }) => sum + Number(corrections), 0);
    return { market, code, asOf, from: corrected[0].date, to: corrected.at(-1).date, count };
  }

  async load(_props, signal) {
    return correctionsOf(this.question(), signal);
  }

  render(_props, { data, error }) {
    if (error) return html`<${Failed} error=${error} again=${this.reload} />`;
    if (data === null) return html`<p class="quiet">Looking for corrections…</p>`;
    const { corrections, isWhole } = data;
    if (corrections.length === 0) {
      return html`<p>
        Points were corrected; a bounded search did not find the replaced values.
      </p>`;
    }
    return html`
      <${ScrollTable} name="Corrections" kind="list corrections stack" heads=${HEADS}>
        ${corrections.map(
          ({ date, recordedAt, before, after }) => html`
            <tr key=${`${date} ${recordedAt}`}>
              <td class="date">${minuteOf(recordedAt)}</td>
              <th scope="row" class="date">${date}</th>
              <td class="figure" data-label="Before"><del>${pointText(before)}</del></td>
              <td class="figure" data-label="After">${pointText(after)}</td>
            </tr>
          `,
        )}
      </${ScrollTable}>
      ${!isWhole && html`<p class="quiet">Earlier corrections may be missing.</p>`}
    `;
  }
}
