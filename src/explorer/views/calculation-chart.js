// The results of a series of anchors as a line.
import { draw } from '../chart.js';
import { dayOf } from '../dates.js';
import { strokeOf } from '../series.js';
import { Component, createRef, darkSetting, html } from '../ui.js';
import { themeOf } from './colours-of-chart.js';

/** The line of the results. A result without a value is a gap. */
const lineOf = (results, isDark) => ({
  code: 'result',
  text: 'result',
  unit: results.find(({ value }) => value !== null)?.unit ?? '',
  days: results.map(({ anchor }) => dayOf(anchor)),
  mid: results.map(({ value }) => (value === null ? null : Number(value))),
  low: results.map(() => null),
  high: results.map(() => null),
  missing: [],
  corrected: [],
  ...strokeOf(0, isDark),
});

/** @param props `results`, and `onDrawn(picture)`: `picture(isDark)` has the lines of a PNG */
export class CalculationChart extends Component {
  place = createRef();

  componentDidMount() {
    this.redraw();
    this.watcher = new ResizeObserver(([{ contentRect }]) => {
      if (Math.round(contentRect.width) !== this.width) this.redraw();
    });
    this.watcher.observe(this.place.current);
    darkSetting.addEventListener('change', this.redraw);
  }

  componentDidUpdate({ results }) {
    if (results !== this.props.results) this.redraw();
  }

  componentWillUnmount() {
    this.watcher.disconnect();
    darkSetting.removeEventListener('change', this.redraw);
    this.chart?.destroy();
  }

  picture = (isDark) => ({
    lines: [lineOf(this.props.results, isDark)],
    theme: themeOf(this.place.current, isDark),
  });

  redraw = () => {
    const element = this.place.current;
    this.width = Math.round(element.clientWidth);
    if (this.width === 0) return;
    this.chart?.destroy();
    const nothing = () => {};
    this.chart = draw([lineOf(this.props.results, darkSetting.matches)], {
      element,
      width: this.width,
      theme: themeOf(element),
      log: false,
      bands: false,
      labels: false,
      onCursor: nothing,
      onZoom: nothing,
    });
    element.chart = this.chart;
    this.props.onDrawn(this.picture);
  };

  render() {
    return html`<div class="chart" ref=${this.place} role="img" aria-label="The results by anchor, as in the table below" />`;
  }
}
