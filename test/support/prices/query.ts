/** The query string equivalent to a body; an empty list counts as absent in both. */
export function queryText(body: { readonly filters: object; readonly options: object }): string {
  const pairs = Object.entries({ ...body.filters, ...body.options }).flatMap(([name, value]) => {
    const values = Array.isArray(value) ? value : [textOf(value)];
    return values.map((each) => `${encodeURIComponent(name)}=${encodeURIComponent(String(each))}`);
  });
  return pairs.join('&');
}

/** Writes `aggregate`, the only object, as `period:method`. */
function textOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const { period, method } = value as Readonly<Record<string, string>>;
  return `${period}:${method}`;
}

/** Rewrites the pointers of a POST answer to those of the GET parameters. */
export const byAddress = (text: string): string =>
  text
    .replace(/"pointer":"\/(?:filters|options)\/(\w+)(\/\d+)?[^"]*"/g, '"pointer":"?$1$2"')
    // A warning as a row of CSV.
    .replace(/(# warning \w+ )\/(?:filters|options)\/(\w+)(\/\d+)?[^:]*:/g, '$1?$2$3:');
