// Small lines without axes.
import { html } from '../ui.js';

const EDGE = 2;

function hasGap(gaps, from, to) {
  for (let day = from + 1; day < to; day += 1) if (gaps.has(day)) return true;
  return false;
}

/**
 * The SVG path of a line, interrupted at each gap.
 * @param box `first` and `last`, the days of its edges, `width` and `height`
 */
function pathOf({ days, mid, missing }, { first, last, width, height }) {
  const known = mid.filter((each, at) => each !== null && days[at] >= first);
  if (known.length < 2) return '';
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const gaps = new Set(missing);
  const x = (day) => EDGE + ((day - first) / (last - first)) * (width - 2 * EDGE);
  const y = (value) => EDGE + (1 - (value - least) / (most - least || 1)) * (height - 2 * EDGE);
  let path = '';
  let pen = 'M';
  for (let at = 0; at < days.length; at += 1) {
    const isAfterGap = at > 0 && missing.length > 0 && hasGap(gaps, days[at - 1], days[at]);
    if (mid[at] === null || isAfterGap) pen = 'M';
    if (mid[at] === null || days[at] < first) continue;
    path += `${pen}${x(days[at]).toFixed(1)} ${y(mid[at]).toFixed(1)}`;
    pen = 'L';
  }
  return path;
}

/**
 * A line of `series.js`. Lines with the same first and last day share an axis, so a line ends where
 * its data end.
 */
export const Spark = ({ line, first, last, width = 132, height = 30 }) => html`
  <svg
    class="spark"
    viewBox="0 0 ${width} ${height}"
    width=${width}
    height=${height}
    preserveAspectRatio="none"
    aria-hidden="true"
  >
    <path d=${pathOf(line, { first, last, width, height })} vector-effect="non-scaling-stroke" />
  </svg>
`;
