import { calendarDay } from '../../conversion/calendar.ts';
import { type Columns, columnSlice } from '../../conversion/columns.ts';
import { Block, emptyColumns } from './block.ts';

/** Points that a block has at least, where there are as many: a block ends with a calendar year. */
const BLOCK_POINTS = 200;

/** Inclusive bounds as days counted from 2000-01-01. */
export interface Days {
  readonly first: number;
  readonly last: number;
}

/** Some points of a block, by index. */
export interface Stretch {
  readonly block: Block;
  readonly from: number;
  readonly to: number;
}

const yearOf = (day: number): number => calendarDay(day).year;

/** Cuts a series into blocks. */
export function blocksOf(columns: Columns): Block[] {
  const { length, day } = columns;
  const blocks: Block[] = [];
  let start = 0;
  let year = length > 0 ? yearOf(day[0] as number) : 0;
  for (let index = 1; index < length; index += 1) {
    const next = yearOf(day[index] as number);
    if (next !== year && index - start >= BLOCK_POINTS) {
      blocks.push(new Block(columnSlice(columns, start, index)));
      start = index;
    }
    year = next;
  }
  if (length > start) blocks.push(new Block(columnSlice(columns, start, length)));
  return blocks;
}

/** The stretches of a series that were asked for last: many ask for the same days. */
const askedLast = new WeakMap<readonly Block[], Days & { readonly found: readonly Stretch[] }>();

/** The points of a series within some days, block by block. */
export function stretchesOf(blocks: readonly Block[], { first, last }: Days): readonly Stretch[] {
  const known = askedLast.get(blocks);
  if (known?.first === first && known.last === last) return known.found;
  const found = stretchesIn(blocks, { first, last });
  askedLast.set(blocks, { first, last, found });
  return found;
}

function stretchesIn(blocks: readonly Block[], { first, last }: Days): Stretch[] {
  const stretches: Stretch[] = [];
  for (const block of blocks) {
    if (block.lastDay < first) continue;
    if (block.firstDay > last) break;
    const from = block.indexFrom(first);
    const to = block.lastDay <= last ? block.length : block.indexFrom(last + 1);
    if (to > from) stretches.push({ block, from, to });
  }
  return stretches;
}

/** The points of some stretches as columns. */
export function columnsOfStretches(stretches: readonly Stretch[]): Columns {
  const columns = emptyColumns(stretches.reduce((sum, { from, to }) => sum + to - from, 0));
  let place = 0;
  for (const { block, from, to } of stretches) {
    block.unpackInto(columns, place, from, to);
    place += to - from;
  }
  return columns;
}

/** Columns one after the other, in date order. */
function joined(parts: readonly Columns[]): Columns {
  const all = emptyColumns(parts.reduce((sum, { length }) => sum + length, 0));
  let place = 0;
  for (const part of parts) {
    for (const name of NAMES) all[name].set(part[name].subarray(0, part.length), place);
    place += part.length;
  }
  return all;
}

const NAMES = ['day', 'low', 'mid', 'high', 'scale', 'publishedAt', 'corrections'] as const;

/**
 * A series in which the points of some days are replaced by others. Blocks of other years are the
 * very same objects, so what is remembered of them stays.
 */
export function replacedIn(blocks: readonly Block[], days: Days, points: Columns): Block[] {
  const firstYear = yearOf(days.first);
  const lastYear = yearOf(days.last);
  let start = 0;
  while (start < blocks.length && yearOf((blocks[start] as Block).lastDay) < firstYear) start += 1;
  // A last block that is short takes the next year in.
  if (start > 0 && (blocks[start - 1] as Block).length < BLOCK_POINTS) start -= 1;
  let end = start;
  while (end < blocks.length && yearOf((blocks[end] as Block).firstDay) <= lastYear) end += 1;
  const touched = blocks.slice(start, end);
  const before = columnsOfStretches(
    stretchesOf(touched, { first: -Infinity, last: days.first - 1 }),
  );
  const after = columnsOfStretches(stretchesOf(touched, { first: days.last + 1, last: Infinity }));
  const middle = blocksOf(joined([before, points, after]));
  return [...blocks.slice(0, start), ...middle, ...blocks.slice(end)];
}
