/** Powers of ten that a double holds exactly, by exponent: 10^0 to 10^22. */
export const POWERS = Float64Array.from({ length: 23 }, (_, exponent) => 10 ** exponent);

/** Greatest exponent of `POWERS`. */
export const EXACT_POWER_MAX = 22;

/** 10^`exponent` as a double, exactly. @param exponent from 0 to `EXACT_POWER_MAX` */
export const exactPower = (exponent: number): number => POWERS[exponent] as number;
