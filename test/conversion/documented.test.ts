import { readFileSync } from 'node:fs';
import t from 'tap';
import { expected } from './oracle.ts';

const read = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/**
 * `17173.1 × 0.45 × 1 ÷ 1000 ÷ 1.18 = 6.5985… → 6.59855`: how the pages recompute a figure. One by a
 * mean rate has a divisor fewer.
 */
const FIGURE = /^(N) +× (N) × (N) ÷ (N)(?: ÷ (N))? = (N)… → (N)$/;
const FIGURES = new RegExp(FIGURE.source.replaceAll('N', String.raw`[\d.]+`), 'gm');

t.test('every figure that a page recomputes by hand is right', async (t) => {
  for (const [path, least] of [
    ['README.md', 2],
    ['docs/conversion.md', 6],
  ] as const) {
    const figures = [...read(path).matchAll(FIGURES)];
    t.ok(figures.length >= least, `${path}: ${figures.length}`);
    for (const [line, value, multiply, to, divide, from, unrounded, rounded] of figures) {
      const product = [value, multiply, to].map(String);
      const divisors = [divide, from ?? 1].map(String);
      t.ok(expected(product, divisors, 40).startsWith(unrounded ?? 'none'), line);
      t.equal(expected(product, divisors, null), rounded, line);
    }
  }
});

t.test('the mean that a page recomputes is that of its own figures', async (t) => {
  const page = read('docs/conversion.md');
  const [, ...texts] = /\(([\d.]+)… \+ ([\d.]+)… \+ ([\d.]+)…\) ÷ 3 = ([\d.]+)… → ([\d.]+)\./.exec(
    page,
  ) ?? [''];
  const [one, two, three, mean = '', rounded] = texts;
  const digits = (text = '') => BigInt(text.replace('.', ''));
  const sum = String(digits(one) + digits(two) + digits(three));
  const scale = String(10 ** (one?.split('.')[1]?.length ?? 0));
  t.equal(expected([sum], ['3', scale], null), rounded);
  t.ok(expected([sum], ['3', scale], 20).startsWith(mean.slice(0, -1)));
});
