// The value that a correction replaced, beside the point at the cursor.
import { minuteOf } from '../dates.js';
import { correctionsOf } from '../history.js';
import { Component, html } from '../ui.js';

/**
 * The value that a correction replaced. It is requested when the cursor rests on the point. A
 * converted or averaged point has only its count, because the replaced value is as published.
 */
export class Replaced extends Component {
  state = { corrections: null };

  componentDidMount() {
    if (!this.props.isPublished) return;
    this.timer = setTimeout(() => this.find(), 200);
  }

  componentWillUnmount() {
    clearTimeout(this.timer);
    this.isGone = true;
  }

  async find() {
    const { market, code, point, asOf } = this.props;
    const { date } = point;
    const count = Number(point.corrections);
    try {
      const found = await correctionsOf({ market, code, from: date, to: date, asOf, count });
      if (!this.isGone) this.setState(found);
    } catch {
      // Shows only the number of corrections.
    }
  }

  render({ point }, { corrections }) {
    const times = point.corrections === '1' ? 'corrected' : `corrected ${point.corrections} times`;
    if (!corrections || corrections.length === 0) return html`<span class="mark">${times}</span>`;
    const [{ before, recordedAt }] = corrections;
    return html`<span class="mark">${times}: replaced <del>${before.mid}</del> on ${minuteOf(recordedAt)}</span>`;
  }
}
