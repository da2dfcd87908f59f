import { dayOf, WEEKDAYS } from './calendar.ts';
import { DRIVERS, type Driver, type DriverName } from './drivers.ts';
import { normalOf } from './random.ts';
import type { Drivers } from './types.ts';

const PULL_PER_YEAR = 1.5;
const YEARS_PER_STEP = 1 / 260;

/**
 * A mean-reverting walk around 0, one value for each of `WEEKDAYS`. `volatility` is the standard
 * deviation of a year without the pull. It begins somewhere in its long-run spread.
 */
function walkOf(seed: string, volatility: number): Float64Array {
  const normal = normalOf(seed);
  const step = volatility * Math.sqrt(YEARS_PER_STEP);
  const path = new Float64Array(WEEKDAYS.length);
  let value = (volatility * normal()) / Math.sqrt(2 * PULL_PER_YEAR);
  for (let index = 0; index < path.length; index += 1) {
    path[index] = value;
    value += step * normal() - PULL_PER_YEAR * YEARS_PER_STEP * value;
  }
  return path;
}

/** The slow level on a day: straight lines between the points given, flat outside them. */
function levelOn(level: Driver['level'], day: number): number {
  let [fromDay, from] = [Number.NEGATIVE_INFINITY, 0];
  for (const [date, to] of level) {
    const toDay = dayOf(date);
    if (fromDay === Number.NEGATIVE_INFINITY) from = to;
    else if (day < toDay) return from + ((day - fromDay) / (toDay - fromDay)) * (to - from);
    [fromDay, from] = [toDay, to];
  }
  return from;
}

const driverPaths = new Map<DriverName, Float64Array>();

function driverPath(name: DriverName): Float64Array {
  const known = driverPaths.get(name);
  if (known) return known;
  const { volatility, level }: Driver = DRIVERS[name];
  const path = walkOf(`driver/${name}`, volatility);
  WEEKDAYS.forEach((day, index) => {
    path[index] = (path[index] ?? 0) + levelOn(level, day);
  });
  driverPaths.set(name, path);
  return path;
}

/** The logarithm of a price over `WEEKDAYS`: its own walk and its share of each driver. */
export function pathOf(seed: string, volatility: number, drivers: Drivers): Float64Array {
  const path = walkOf(seed, volatility);
  for (const [name, share] of Object.entries(drivers) as [DriverName, number][]) {
    const shared = driverPath(name);
    for (let index = 0; index < path.length; index += 1) {
      path[index] = (path[index] ?? 0) + share * (shared[index] ?? 0);
    }
  }
  return path;
}
