/** A movement that several prices share. */
export interface Driver {
  /** Standard deviation of its logarithm over a year. */
  readonly volatility: number;
  /** The slow level it is pulled to: day and logarithm, joined by straight lines. */
  readonly level: readonly (readonly [day: string, level: number])[];
}

/**
 * The shared movements of the sample series: cathodes move with their metals, hydroxide with
 * carbonate. Invented shapes of a believable size; lithium moves tenfold.
 */
export const DRIVERS = {
  lithium: {
    volatility: 0.45,
    level: [
      ['2021-01-01', -0.9],
      ['2021-09-01', 0.1],
      ['2022-11-01', 1.3],
      ['2023-12-01', -0.3],
      ['2025-03-01', -0.9],
      ['2026-06-30', 0],
    ],
  },
  nickel: {
    volatility: 0.28,
    level: [
      ['2021-01-01', 0],
      ['2022-04-01', 0.5],
      ['2024-01-01', 0],
    ],
  },
  cobalt: {
    volatility: 0.28,
    level: [
      ['2021-01-01', -0.3],
      ['2022-05-01', 0.4],
      ['2024-12-01', -0.8],
      ['2026-03-01', 0],
    ],
  },
  manganese: { volatility: 0.2, level: [['2021-01-01', 0]] },
  copper: {
    volatility: 0.18,
    level: [
      ['2021-01-01', -0.4],
      ['2026-06-30', 0],
    ],
  },
  aluminium: {
    volatility: 0.17,
    level: [
      ['2021-01-01', -0.4],
      ['2022-03-01', 0],
      ['2023-06-01', -0.4],
      ['2026-06-30', 0],
    ],
  },
  graphite: {
    volatility: 0.1,
    level: [
      ['2021-01-01', 0.1],
      ['2022-09-01', 0.4],
      ['2024-06-01', 0],
    ],
  },
  rareEarths: {
    volatility: 0.3,
    level: [
      ['2021-01-01', -0.3],
      ['2022-03-01', 0.5],
      ['2024-04-01', -0.4],
      ['2026-06-30', 0],
    ],
  },
  solvents: {
    volatility: 0.2,
    level: [
      ['2021-01-01', 0.4],
      ['2022-02-01', 0.8],
      ['2023-09-01', 0],
    ],
  },
  /** Treatment charges fell below nothing in 2024, when smelters were short of ore. */
  smelting: {
    volatility: 0.15,
    level: [
      ['2021-01-01', 1.7],
      ['2023-06-01', 2.4],
      ['2024-03-01', 1.2],
      ['2024-09-01', 0.1],
    ],
  },
  /** The dollar against the euro, which several other currencies follow. */
  dollar: {
    volatility: 0.07,
    level: [
      ['2021-01-01', 0.04],
      ['2022-09-01', -0.14],
      ['2025-01-01', -0.1],
      ['2026-01-01', 0],
    ],
  },
} as const satisfies Readonly<Record<string, Driver>>;

export type DriverName = keyof typeof DRIVERS;
