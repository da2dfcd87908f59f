// The one file that knows uPlot.
import { dateOf } from './dates.js';
import { panelsOf } from './series.js';

const DAY_S = 86_400;
const HEIGHT = 380;
const HEIGHT_FURTHER = 220;
const LABEL_GAP = 14;

/** The font of the page for a canvas, with a size in its pixels. */
export const fontOf = (size, weight = 400) => `${weight} ${size}px system-ui, sans-serif`;

/** Canvas pixels for each CSS pixel of a chart at zoom 1. */
const pixelOf = ({ zoom = 1 }) => devicePixelRatio * zoom;

/** Days between two ticks of the axis, at least one. uPlot counts 30 days for a month. */
const STEPS = [1, 2, 3, 5, 7, 10, 15, 30, 60, 90, 180, 365, 730, 1825, 3650, 9125, 18_250, 36_500];

/** Date formats by the days between ticks. The first tick of a year shows the year below. */
const DATES = [
  [365 * DAY_S, '{YYYY}', null, null, null, null, null, null, 1],
  [28 * DAY_S, '{MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [DAY_S, '{D} {MMM}', '\n{YYYY}', null, null, null, null, null, 1],
];

/** Days on which any line has a point or a gap, ascending. */
const daysOf = (lines) =>
  [...new Set(lines.flatMap(({ days, missing }) => [...days, ...missing]))].sort((a, b) => a - b);

/**
 * Values of a line by the days of the chart. A gap is null from the point before it to the point
 * after it, also on the days of other lines; otherwise uPlot would bridge a part of the gap. A point
 * without a value is a gap too. Elsewhere the days of other lines are undefined, and uPlot draws the
 * line across them.
 */
function aligned({ days, missing }, values, places) {
  const all = new Array(places.size).fill(undefined);
  for (let at = 0; at < days.length; at += 1) all[places.get(days[at])] = values[at];
  const holes = days.filter((_day, at) => values[at] === null);
  for (const day of [...missing, ...holes]) {
    const place = places.get(day);
    all[place] ??= null;
    for (let at = place - 1; at >= 0 && all[at] === undefined; at -= 1) all[at] = null;
    for (let at = place + 1; at < all.length && all[at] === undefined; at += 1) all[at] = null;
  }
  return all;
}

/** Indexes of points with a gap on both sides, which a line does not show. */
function lonelyIn(values) {
  const known = values.flatMap((value, at) => (value === undefined ? [] : [at]));
  return known.filter(
    (at, index) =>
      values[at] !== null &&
      (values[known[index - 1]] ?? null) === null &&
      (values[known[index + 1]] ?? null) === null,
  );
}

const grouped = new Intl.NumberFormat('en', { maximumFractionDigits: 6 });

/** A number with a thin space between thousands, as in the tables. */
const groupedText = (value) => grouped.format(value).replaceAll(',', '\u2009');

const widthOf = (mark) => mark?.length ?? 0;

/** Ticks of a logarithmic axis: 1, 2 and 5 of each power, or even steps in a narrow range. */
function logMarks(min, max) {
  if (max / min < 10) {
    const step = 10 ** Math.floor(Math.log10((max - min) / 3));
    const wide = [1, 2, 5, 10].map((each) => each * step).find((each) => (max - min) / each < 8);
    const first = Math.ceil(min / wide) * wide;
    return Array.from({ length: 9 }, (_, at) => first + at * wide).filter((each) => each <= max);
  }
  const marks = [];
  for (let power = 10 ** Math.floor(Math.log10(min)); power <= max; power *= 10) {
    marks.push(...[1, 2, 5].map((each) => each * power));
  }
  return marks.filter((each) => each >= min && each <= max);
}

const scaleOf = ({ log }) =>
  log
    ? { distr: 3, range: (_plot, min, max) => (min > 0 ? [min * 0.97, max * 1.03] : [1, 10]) }
    : { range: (_plot, min, max) => uPlot.rangeNum(min ?? 0, max ?? 1, 0.08, true) };

function valueAxis(unit, place, { theme, log, zoom = 1 }) {
  return {
    scale: unit,
    side: place === 0 ? 3 : 1,
    stroke: theme.quiet,
    font: fontOf(12 * zoom),
    size: (_plot, marks) =>
      zoom * Math.max(58, 14 + 7 * Math.max(0, ...(marks ?? []).map(widthOf))),
    gap: 6 * zoom,
    space: 40 * zoom,
    grid: { show: place === 0, stroke: theme.line, width: zoom },
    ticks: { show: false },
    values: (_plot, marks) => marks.map((each) => (each === null ? '' : groupedText(each))),
    ...(log
      ? { splits: (_plot, _axis, min, max) => logMarks(min, max), filter: (_plot, marks) => marks }
      : {}),
  };
}

/** The uPlot series of a line: its mid, and low and high as bounds of the band. */
function seriesOf(line, { theme, zoom = 1 }) {
  const shared = { scale: line.unit, points: { show: false } };
  return [
    {
      ...shared,
      label: line.code,
      stroke: line.stroke,
      width: 1.75 * zoom,
      dash: line.dash?.map((each) => each * zoom),
      points: { show: true, size: 4 * zoom, fill: line.stroke, filter: () => line.lonely },
    },
    { ...shared, label: 'low', stroke: 'transparent', width: 0 },
    { ...shared, label: 'high', stroke: 'transparent', width: 0 },
  ].map((each) => ({ ...each, background: theme.panel }));
}

/** The canvas position of the last value of a line, in pixels; null if it has none. */
function endOf(plot, index, scale) {
  const values = plot.data[index];
  for (let at = plot.series[0].idxs?.[1] ?? values.length - 1; at >= 0; at -= 1) {
    if (values[at] === null || values[at] === undefined) continue;
    return {
      x: plot.valToPos(plot.data[0][at], 'x', true),
      y: plot.valToPos(values[at], scale, true),
    };
  }
  return null;
}

/** Moves overlapping labels apart, downwards first, then back into the plot. */
function spread(labels, { top, height }, pixel) {
  const gap = LABEL_GAP * pixel;
  labels.sort((a, b) => a.y - b.y);
  let least = top + gap / 2;
  for (const each of labels) {
    each.at = Math.max(each.y, least);
    least = each.at + gap;
  }
  let most = top + height - gap / 2;
  for (const each of [...labels].reverse()) {
    each.at = Math.min(each.at, most);
    most = each.at - gap;
  }
}

/** Writes the name of each line at its end. */
function writeLabels(plot, lines, mode) {
  const { theme } = mode;
  const pixel = pixelOf(mode);
  const { ctx, bbox } = plot;
  const labels = lines.flatMap((line, index) => {
    const end = endOf(plot, index * 3 + 1, line.unit);
    return end === null ? [] : [{ ...end, text: line.text, stroke: line.stroke }];
  });
  spread(labels, bbox, pixel);
  const edge = Math.max(...labels.map(({ x }) => x));
  ctx.save();
  ctx.font = fontOf(12 * pixel, 600);
  ctx.textBaseline = 'middle';
  ctx.textAlign = 'left';
  for (const { x, y, at, text, stroke } of labels) {
    ctx.strokeStyle = stroke;
    ctx.lineWidth = pixel;
    ctx.beginPath();
    ctx.moveTo(x + 3 * pixel, y);
    ctx.lineTo(edge + 10 * pixel, at);
    ctx.stroke();
    // An outline in the background colour keeps a label readable on a line.
    ctx.lineWidth = 3 * pixel;
    ctx.strokeStyle = theme.panel;
    ctx.strokeText(text, edge + 13 * pixel, at);
    ctx.fillStyle = stroke;
    ctx.fillText(text, edge + 13 * pixel, at);
  }
  ctx.restore();
}

/** A ring on each corrected point. */
function ringCorrected(plot, lines, places, mode) {
  const pixel = pixelOf(mode);
  const { ctx } = plot;
  ctx.save();
  ctx.lineWidth = 1.5 * pixel;
  ctx.fillStyle = mode.theme.panel;
  lines.forEach((line, index) => {
    ctx.strokeStyle = line.stroke;
    for (const day of line.corrected) {
      const value = plot.data[index * 3 + 1][places.get(day)];
      if (value === null || value === undefined) continue;
      const x = plot.valToPos(day * DAY_S, 'x', true);
      ctx.beginPath();
      ctx.arc(x, plot.valToPos(value, line.unit, true), 4 * pixel, 0, 2 * Math.PI);
      ctx.fill();
      ctx.stroke();
    }
  });
  ctx.restore();
}

/** The unit of an axis with the codes of its prices: all that fit, and the number of the others. */
function namesThatFit(ctx, unit, codes, most) {
  for (let count = codes.length; count > 0; count -= 1) {
    const others = codes.length - count;
    const text = `${unit}: ${codes.slice(0, count).join(', ')}${others > 0 ? ` and ${others} more` : ''}`;
    if (ctx.measureText(text).width <= most) return text;
  }
  return unit;
}

/** Writes the unit of each axis above it. If there are two axes, each also names its prices. */
function writeUnits(plot, lines, units, mode) {
  const { ctx, bbox } = plot;
  const pixel = pixelOf(mode);
  ctx.save();
  ctx.font = fontOf(12 * pixel, 600);
  ctx.fillStyle = mode.theme.ink;
  ctx.textBaseline = 'bottom';
  const most = ctx.canvas.width / 2 - 10 * pixel;
  units.forEach((unit, place) => {
    ctx.textAlign = place === 0 ? 'left' : 'right';
    const x = place === 0 ? bbox.left - 52 * pixel : plot.ctx.canvas.width;
    // On a narrow screen lines have numbers as names, which are shorter than codes.
    const codes = lines
      .filter((line) => line.unit === unit)
      .map(({ code, text }) => (/^\d+$/.test(text) ? text : code));
    const text = units.length > 1 ? namesThatFit(ctx, unit, codes, most) : unit;
    ctx.fillText(text, Math.max(x, 0), bbox.top - 14 * pixel);
  });
  ctx.restore();
}

/** The width for labels beyond the last day, in pixels. */
function labelRoom(lines) {
  const pen = document.createElement('canvas').getContext('2d');
  pen.font = fontOf(12, 600);
  return 20 + Math.max(0, ...lines.map(({ text }) => pen.measureText(text).width));
}

/** A colour `#rrggbb` with an opacity. */
const faint = (colour, percent) =>
  `${colour}${Math.round(percent * 2.55)
    .toString(16)
    .padStart(2, '0')}`;

function optionsOf(lines, units, context) {
  const { mode, width, places, listeners } = context;
  const { zoom = 1 } = mode;
  const room = zoom * context.room;
  const plotWidth = Math.max(120, width - (66 * units.length + 10) * zoom);
  const shareOfRoom = Math.min(0.6, room / plotWidth);
  return {
    width,
    height: context.height,
    padding: [34 * zoom, units.length > 1 ? 0 : 8 * zoom, 0, 0],
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1e3), 'Etc/UTC'),
    legend: { show: false },
    scales: {
      x: {
        range: (_plot, min, max) => [
          min,
          max + ((max - min || DAY_S) * shareOfRoom) / (1 - shareOfRoom),
        ],
      },
      ...Object.fromEntries(units.map((unit) => [unit, scaleOf(mode)])),
    },
    series: [{}, ...lines.flatMap((line) => seriesOf(line, mode))],
    bands: mode.bands
      ? lines.map((line, at) => ({
          series: [at * 3 + 3, at * 3 + 2],
          fill: faint(line.stroke, mode.theme.band),
        }))
      : [],
    axes: [
      {
        stroke: mode.theme.quiet,
        font: fontOf(12 * zoom),
        size: 50 * zoom,
        gap: 5 * zoom,
        grid: { show: false },
        ticks: {
          stroke: mode.theme.line,
          size: 5 * zoom,
          filter: (_plot, marks) => marks.map((each) => (each > context.last ? null : each)),
        },
        space: 64 * zoom,
        incrs: STEPS.map((days) => days * DAY_S),
        values: DATES,
      },
      ...units.map((unit, place) => valueAxis(unit, place, mode)),
    ],
    cursor: {
      sync: { key: context.key, scales: ['x', null] },
      y: false,
      drag: { x: true, y: false, setScale: false },
      points: { show: (plot, index) => index % 3 === 1 && pointMark(plot, index), size: 7 },
      bind: { dblclick: () => () => listeners.zoom(null) },
    },
    hooks: {
      init: [(plot) => hideDaysAfter(plot, context.last)],
      setCursor: [(plot) => listeners.cursor(plot.cursor.idx ?? null)],
      setSelect: [(plot) => plot.select.width > 3 && listeners.select(plot)],
      draw: [
        (plot) => {
          ringCorrected(plot, lines, places, mode);
          if (mode.labels) writeLabels(plot, lines, mode);
          writeUnits(plot, lines, units, mode);
        },
      ],
    },
  };
}

/** Hides the date labels beyond the last day, where the line labels are. They have no ticks. */
function hideDaysAfter(plot, last) {
  const [axis] = plot.axes;
  const { values } = axis;
  axis.values = (self, marks, ...others) =>
    values(self, marks, ...others).map((text, at) => (marks[at] > last ? '' : text));
}

/** The mark of a line at the cursor. */
function pointMark(plot, index) {
  const mark = document.createElement('div');
  mark.className = 'u-cursor-pt';
  mark.style.background = plot.series[index].stroke(plot, index);
  return mark;
}

/** The values of a line; on a logarithmic axis, without values that are not above zero. */
const shownValues = (values, { log }) =>
  log ? values.map((each) => (each !== null && each > 0 ? each : null)) : values;

let charts = 0;

/**
 * Draws lines into an element: stacked panels that share their days and their cursor.
 * @param series lines of `lineOf`, each with `stroke`, `dash` and `text`, the label at its end
 * @param mode `element`, `width`, `theme` (`ink`, `quiet`, `line`, `panel`, `band` in percent),
 *   `log`, `bands`, `labels`, `zoom` (a multiple of all sizes, 1 by default), `onCursor(day)`, and
 *   `onZoom({ from, to })` or `onZoom(null)`
 * @returns `days`, `plots`, `moveTo(index)` and `destroy()`
 */
export function draw(series, mode) {
  const days = daysOf(series);
  const places = new Map(days.map((day, at) => [day, at]));
  charts += 1;
  const key = `chart-${charts}`;
  let at = null;
  const listeners = {
    cursor: (index) => {
      if (index === at) return;
      at = index;
      mode.onCursor(index === null ? null : days[index]);
    },
    select: (plot) => {
      const { left, width } = plot.select;
      const edge = (pixel) => dateOf(Math.round(plot.posToVal(pixel, 'x') / DAY_S));
      mode.onZoom({ from: edge(left), to: edge(left + width) });
    },
    zoom: mode.onZoom,
  };
  const seconds = days.map((day) => day * DAY_S);
  // All panels have the same room, so that their days are below each other.
  const room = labelRoom(series);
  const plots = panelsOf(series).map((units, panel) => {
    const lines = series
      .filter(({ unit }) => units.includes(unit))
      .map((line) => {
        const mid = aligned(line, shownValues(line.mid, mode), places);
        const low = aligned(line, shownValues(line.low, mode), places);
        const high = aligned(line, shownValues(line.high, mode), places);
        return { ...line, values: [mid, low, high], lonely: lonelyIn(mid) };
      });
    const { width } = mode;
    const height = (panel === 0 ? HEIGHT : HEIGHT_FURTHER) * (mode.zoom ?? 1);
    const context = { mode, width, height, places, key, listeners, room, last: seconds.at(-1) };
    const data = [seconds, ...lines.flatMap(({ values }) => values)];
    return new uPlot(optionsOf(lines, units, context), data, mode.element);
  });
  return {
    days,
    plots,
    moveTo: (index) => {
      for (const plot of plots) {
        const left = plot.valToPos(seconds[index], 'x');
        plot.setCursor({ left, top: plot.over.clientHeight / 2 });
      }
    },
    destroy: () => {
      for (const plot of plots) plot.destroy();
    },
  };
}
