/** The sides of a price that a payable may refer to. */
export const REFERENCE_SIDES = ['low', 'mid', 'high'] as const;

/** The values that a payable may refer to: that of a session, or the average of a month. */
export const REFERENCE_STATISTICS = ['session', 'month-average'] as const;

/** The price that a payable is a percentage of, from a day on. */
export interface PayableReference {
  /** Code of the price. */
  readonly code: string;
  readonly side: (typeof REFERENCE_SIDES)[number];
  readonly statistic: (typeof REFERENCE_STATISTICS)[number];
  /** The element that the payable pays for, such as `Ni`. */
  readonly element: string;
  /** First day of this reference. */
  readonly validFrom: string;
}

/**
 * The reference in force on a day.
 * @param references in the order of their first days; null if unknown
 */
export const referenceOn = (
  references: readonly PayableReference[] | null,
  day: string,
): PayableReference | null => references?.findLast(({ validFrom }) => validFrom <= day) ?? null;
