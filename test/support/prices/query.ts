/** A body's parts as the query that says the same; an empty list counts as absent in both. */
export function queryText(body: { readonly filters: object; readonly options: object }): string {
  const pairs = Object.entries({ ...body.filters, ...body.options }).flatMap(([name, value]) => {
    const values = Array.isArray(value) ? value : [textOf(value)];
    return values.map((each) => `${encodeURIComponent(name)}=${encodeURIComponent(String(each))}`);
  });
  return pairs.join('&');
}

/** The one member that is an object is `aggregate`, of period and method. */
function textOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const { period, method } = value as Readonly<Record<string, string>>;
  return `${period}:${method}`;
}

/** A text of a POST as a GET has it: a place in the body is that of its parameter. */
export const byAddress = (text: string): string =>
  text.replace(/"pointer":"\/(?:filters|options)\/(\w+)(\/\d+)?[^"]*"/g, '"pointer":"?$1$2"');
