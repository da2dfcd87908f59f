// The chart as a PNG, with the title above it and the notes on its prices below it.
import { draw, fontOf } from '../chart.js';
import { today } from '../dates.js';

const MARGIN = 20;
const TITLE = 26;
const LINE = 18;

/** Width of the chart in a picture, in CSS pixels. */
const WIDTH = 1_000;

/** Pixels of a picture for each CSS pixel. */
const SCALE = 2;

/** Breaks a text into lines that fit a width. */
function wrapped(pen, text, most) {
  const lines = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && pen.measureText(longer).width > most) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return [...lines, line];
}

const TITLE_FONT = fontOf(17 * SCALE, 700);
const NOTE_FONT = fontOf(12 * SCALE);

/**
 * Draws lines as a PNG of twice the usual resolution.
 * @param lines the lines of `draw`, in the colours of the theme
 * @param texts `title`, and `notes`, the lines below the chart
 * @param mode `log`, `bands`, and `theme` as of `draw`
 * @returns a Blob
 */
export function pictureOf(lines, { title, notes }, mode) {
  const element = document.createElement('div');
  element.className = 'offscreen';
  document.body.append(element);
  const zoom = SCALE / devicePixelRatio;
  const nothing = () => {};
  const size = { element, width: WIDTH * zoom, zoom };
  const chart = draw(lines, { ...mode, ...size, labels: true, onCursor: nothing, onZoom: nothing });
  // uPlot draws in a microtask.
  return new Promise((done) => setTimeout(done))
    .then(() => composed(chart.plots, { title, notes }, mode.theme))
    .finally(() => {
      chart.destroy();
      element.remove();
    });
}

function composed(plots, { title, notes }, theme) {
  const canvases = plots.map(({ ctx }) => ctx.canvas);
  const picture = document.createElement('canvas');
  picture.width = Math.max(...canvases.map((each) => each.width)) + 2 * MARGIN * SCALE;
  const most = picture.width - 2 * MARGIN * SCALE;
  const pen = picture.getContext('2d');
  pen.font = TITLE_FONT;
  const titles = wrapped(pen, title, most);
  pen.font = NOTE_FONT;
  const below = [...notes, `Drawn ${today()}`].flatMap((note) => wrapped(pen, note, most));
  const heights = canvases.reduce((sum, each) => sum + each.height, 0);
  const texts = titles.length * TITLE + (below.length + 1) * LINE;
  picture.height = heights + (2 * MARGIN + texts) * SCALE;
  pen.fillStyle = theme.panel;
  pen.fillRect(0, 0, picture.width, picture.height);
  pen.textBaseline = 'top';
  let y = MARGIN * SCALE;
  const write = (text, font, colour, height) => {
    pen.font = font;
    pen.fillStyle = colour;
    pen.fillText(text, MARGIN * SCALE, y, most);
    y += height * SCALE;
  };
  for (const each of titles) write(each, TITLE_FONT, theme.ink, TITLE);
  for (const each of canvases) {
    pen.drawImage(each, MARGIN * SCALE, y);
    y += each.height;
  }
  y += 6 * SCALE;
  for (const each of below) write(each, NOTE_FONT, theme.quiet, LINE);
  return new Promise((done) => picture.toBlob(done, 'image/png'));
}
