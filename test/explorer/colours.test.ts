import t from 'tap';

const { DARK, LIGHT, strokeOf } = await import(
  new URL('../../src/explorer/series.js', import.meta.url).href
);

type Triple = readonly [number, number, number];

/** Linear red, green and blue as each deficiency leaves them (Machado et al., 2009). */
const VIEWS: Readonly<Record<string, readonly Triple[]>> = {
  full: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

/** Linear red, green and blue of `#rrggbb`. */
const linearOf = (hex: string): Triple =>
  [1, 3, 5].map((at) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as unknown as Triple;

const dot = (row: Triple, [r, g, b]: Triple): number => row[0] * r + row[1] * g + row[2] * b;

const seenBy = (view: readonly Triple[], colour: Triple): Triple =>
  view.map((row) => Math.min(1, Math.max(0, dot(row, colour)))) as unknown as Triple;

/** Lightness and two axes of colour in which equal distances look equal (Oklab, Ottosson 2020). */
function oklabOf(colour: Triple): Triple {
  const l = Math.cbrt(dot([0.4122214708, 0.5363325363, 0.0514459929], colour));
  const m = Math.cbrt(dot([0.2119034982, 0.6806995451, 0.1073969566], colour));
  const s = Math.cbrt(dot([0.0883024619, 0.2817188376, 0.6299787005], colour));
  return [
    dot([0.2104542553, 0.793617785, -0.0040720468], [l, m, s]),
    dot([1.9779984951, -2.428592205, 0.4505937099], [l, m, s]),
    dot([0.0259040371, 0.7827717662, -0.808675766], [l, m, s]),
  ];
}

/** A clearly visible distance: about five times the just noticeable difference. */
const DISTANCE_MIN = 0.1;

const luminance = (colour: Triple): number => dot([0.2126, 0.7152, 0.0722], colour);

function contrast(one: string, other: string): number {
  const [a = 0, b = 0] = [one, other]
    .map((each) => luminance(linearOf(each)))
    .sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}

for (const [name, colours, panel] of [
  ['light', LIGHT, '#ffffff'],
  ['dark', DARK, '#161c22'],
] as [string, string[], string][]) {
  t.test(`lines are told apart in every vision, ${name}`, async (t) => {
    t.equal(colours.length, 8);
    for (const [view, rows] of Object.entries(VIEWS)) {
      const seen = colours.map((each) => oklabOf(seenBy(rows, linearOf(each))));
      const distances = seen.flatMap((one, at) =>
        seen
          .slice(0, at)
          .map((other) => Math.hypot(...one.map((each, axis) => each - (other[axis] ?? 0)))),
      );
      t.ok(Math.min(...distances) >= DISTANCE_MIN, `${view}: ${Math.min(...distances).toFixed(3)}`);
    }
    for (const each of colours) t.ok(contrast(each, panel) >= 3, `${each} on ${panel}`);
  });
}

t.test('dashes begin with the ninth line, and no two of twenty lines are alike', async (t) => {
  for (const isDark of [false, true]) {
    const strokes = Array.from({ length: 20 }, (_, place) => strokeOf(place, isDark));
    t.ok(strokes.slice(0, 8).every(({ dash }) => dash === undefined));
    t.ok(strokes.slice(8).every(({ dash }) => dash !== undefined));
    t.equal(new Set(strokes.map((each) => JSON.stringify(each))).size, 20);
  }
});
