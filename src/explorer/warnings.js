// The warnings of the responses of several markets.

/** One remark about a currency that lacks rates in several markets. */
function joinedRates(all) {
  const [{ currency, lastDateWithRate }] = all;
  const sum = (name) => all.reduce((total, each) => total + each[name], 0);
  const days = all.flatMap((each) => [each.firstDateWithoutRate, each.lastDateWithoutRate]);
  const [from, to] = [days.filter(Boolean).sort()[0], days.filter(Boolean).sort().at(-1)];
  const span = from ? `, from ${from} to ${to}` : '';
  const parts = all.map(
    (each) => `${each.market} ${each.pointsWithoutRate} of ${each.pointsRequested}`,
  );
  const newest = lastDateWithRate
    ? `the newest one is of ${lastDateWithRate}`
    : 'there is none at all';
  const counts = `${sum('pointsWithoutRate')} of ${sum('pointsRequested')} points`;
  return `No rate of ${currency} for ${counts}${span} (${parts.join(', ')}); ${newest}`;
}

/** The warnings of several markets: equal ones once, and one for each currency that lacks rates. */
export function joinedWarnings(answers) {
  const groups = new Map();
  for (const { market, $metadata } of answers) {
    for (const warning of $metadata.warnings) {
      const { code, currency, detail, lastDateWithRate } = warning;
      const isRates = code === 'rates_missing';
      const key = isRates ? `${code} ${currency} ${lastDateWithRate}` : `${code} ${detail}`;
      groups.set(key, [...(groups.get(key) ?? []), { market, ...warning }]);
    }
  }
  return [...groups.values()].map((all) =>
    all.length > 1 && all[0].code === 'rates_missing'
      ? { ...all[0], detail: joinedRates(all) }
      : all[0],
  );
}
