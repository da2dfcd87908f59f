// The chart as a PNG with title, codes, currency and unit, source and date.
import { today } from './dates.js';

const MARGIN = 20;
const TITLE = 26;
const LINE = 18;

/**
 * Renders a drawn chart as PNG.
 * @param plots the plots of the chart, from the top
 * @param texts `title`, and `notes`, the lines below the chart
 * @param theme `ink`, `quiet`, `panel`
 * @returns a Blob
 */
export function pictureOf(plots, { title, notes }, theme) {
  const scale = devicePixelRatio;
  const canvases = plots.map(({ ctx }) => ctx.canvas);
  const width = Math.max(...canvases.map((each) => each.width)) + 2 * MARGIN * scale;
  const heights = canvases.reduce((sum, each) => sum + each.height, 0);
  const picture = document.createElement('canvas');
  picture.width = width;
  picture.height = heights + (2 * MARGIN + TITLE + (notes.length + 1) * LINE) * scale;
  const pen = picture.getContext('2d');
  pen.fillStyle = theme.panel;
  pen.fillRect(0, 0, picture.width, picture.height);
  const most = width - 2 * MARGIN * scale;
  const write = (text, font, colour, y) => {
    pen.font = `${font.replace(/\d+(?=px)/, (size) => String(size * scale))} system-ui, sans-serif`;
    pen.fillStyle = colour;
    pen.textBaseline = 'top';
    pen.fillText(text, MARGIN * scale, y, most);
  };
  write(title, '700 17px', theme.ink, MARGIN * scale);
  let y = (MARGIN + TITLE) * scale;
  for (const each of canvases) {
    pen.drawImage(each, MARGIN * scale, y);
    y += each.height;
  }
  for (const [at, note] of [...notes, `Drawn ${today()}`].entries()) {
    write(note, '400 12px', theme.quiet, y + (6 + at * LINE) * scale);
  }
  return new Promise((done) => picture.toBlob(done, 'image/png'));
}
