/** One bar: label and value. */
export interface Bar {
  readonly label: string;
  readonly value: number;
}

const WIDTH = 760;
/** Room for the labels. */
const LEFT = 150;
const ROW = 26;

const shown = (value: number): string =>
  value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(2) : value.toPrecision(2);

/** Horizontal bars on a logarithmic scale, as a standalone SVG. */
export function barChart(title: string, unit: string, bars: readonly Bar[], left = LEFT): string {
  const space = WIDTH - left - 110;
  const values = bars.map(({ value }) => value);
  const low = 10 ** Math.floor(Math.log10(Math.min(...values)));
  const high = 10 ** Math.ceil(Math.log10(Math.max(...values)));
  const x = (value: number): number =>
    left + (space * Math.log10(value / low)) / Math.log10(high / low);
  const height = 56 + bars.length * ROW + 24;
  const rows = bars.map(({ label, value }, row) => {
    const y = 48 + row * ROW;
    const colour = label.startsWith('service') ? '#0f766e' : '#94a3b8';
    const width = Math.max(x(value) - left, 2);
    return `<text x="${left - 8}" y="${y + 14}" text-anchor="end">${label}</text>
<rect x="${left}" y="${y}" width="${width.toFixed(1)}" height="18" fill="${colour}"/>
<text x="${(left + width + 6).toFixed(1)}" y="${y + 14}">${shown(value)}</text>`;
  });
  const ticks: string[] = [];
  for (let value = low; value <= high * 1.001; value *= 10) {
    const at = x(value).toFixed(1);
    const text = value < 1 ? value.toPrecision(1) : value;
    ticks.push(`<line x1="${at}" y1="40" x2="${at}" y2="${height - 26}" stroke="#e2e8f0"/>
<text x="${at}" y="${height - 10}" text-anchor="middle" fill="#64748b">${text}</text>`);
  }
  const font = 'font-family="system-ui, sans-serif" font-size="13"';
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" ${font}>
<title>${title}</title>
<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>
<text x="12" y="24" font-size="15" font-weight="600">${title}</text>
<text x="${WIDTH - 12}" y="24" text-anchor="end" fill="#64748b">${unit}, logarithmic</text>
${ticks.join('\n')}
${rows.join('\n')}
</svg>
`;
}
