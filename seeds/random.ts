import { createHash } from 'node:crypto';

/** Numbers of [0, 1), the same for the same text on every machine: sfc32 seeded by SHA-256. */
export function uniformOf(text: string): () => number {
  const digest = createHash('sha256').update(text).digest();
  let [a, b, c, d] = [0, 4, 8, 12].map((offset) => digest.readInt32LE(offset)) as [
    number,
    number,
    number,
    number,
  ];
  return () => {
    const sum = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 4_294_967_296;
  };
}

/** Nearly normal numbers, mean 0 and variance 1: the sum of four uniform ones. */
export function normalOf(text: string): () => number {
  const uniform = uniformOf(text);
  return () => (uniform() + uniform() + uniform() + uniform() - 2) * Math.sqrt(3);
}

/**
 * e to the power of x, nearly. Only operations that IEEE 754 defines to the last bit are used, so
 * that the series are the same on every machine; `Math.exp` may differ.
 */
export function growth(x: number): number {
  let power = 1 + x / 1_024;
  for (let squarings = 0; squarings < 10; squarings += 1) power *= power;
  return power;
}
