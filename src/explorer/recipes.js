// The shown request as programs. Each reads the key from COMMODITY_PRICES_KEY. Rows without a date are
// prices without points.

const PLACEHOLDER = 'put your key here';

/** A single-quoted shell string. */
const shell = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** A double-quoted string of Python, R and TypeScript, all of which accept JSON strings. */
const quoted = (text) => JSON.stringify(text);

/** A double-quoted string of Power Query, where `#(` begins an escape sequence. */
const inQuery = (text) => `"${text.replaceAll('"', '""').replaceAll('#(', '#(#)(')}"`;

const curl = (url) => `curl -sS --fail-with-body --compressed ${shell(url)} \\
  -H "x-api-key: \${COMMODITY_PRICES_KEY:-${PLACEHOLDER}}" \\
  -o prices.csv &&
  # Counts the points: a price without points has a row without a date.
  grep -c '^[^,]*,[0-9]' prices.csv
`;

const python = (url) => `import csv, io, os, urllib.request

URL = ${quoted(url)}
KEY = os.environ.get("COMMODITY_PRICES_KEY", "${PLACEHOLDER}")

class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # A redirect would carry the key to another address.

request = urllib.request.Request(URL, headers={"x-api-key": KEY})
with urllib.request.build_opener(NoRedirect).open(request, timeout=60) as answer:
    # Every cell is text, so that no digit is lost.
    rows = csv.DictReader(io.TextIOWrapper(answer, "utf-8", newline=""))
    # A price without points has a row without a date.
    points = [row for row in rows if row["date"]]
print(len(points), "points")
`;

const r = (url) => `address <- ${quoted(url)}
key <- Sys.getenv("COMMODITY_PRICES_KEY", "${PLACEHOLDER}")

# R follows redirects and sends the key along, so the address must be the final one.
answer <- url(address, headers = c("x-api-key" = key))
# Every column is text, so that no digit is lost: as.numeric() where you calculate.
prices <- read.csv(answer, colClasses = "character", na.strings = character(0),
  check.names = FALSE, encoding = "UTF-8")
prices <- prices[prices$date != "", ]  # A price without points has a row without a date.
cat(nrow(prices), "points\\n")
`;

/** Power Query passes repeated parameters as lists. */
function powerQuery(url) {
  const { origin, pathname, searchParams } = new URL(url);
  const names = [...new Set(searchParams.keys())];
  const fields = names.map((name) => {
    const values = searchParams.getAll(name).map(inQuery);
    return `${name} = ${values.length === 1 ? values[0] : `{${values.join(', ')}}`}`;
  });
  return `let
    Answer = Web.Contents(${inQuery(origin)}, [
        RelativePath = ${inQuery(pathname.slice(1))},
        Headers = [#"x-api-key" = ${inQuery(PLACEHOLDER)}],
        Query = [${fields.join(', ')}]]),
    Rows = Table.PromoteHeaders(Csv.Document(Answer, [Delimiter = ",", Encoding = 65001])),
    // A price without points has a row without a date.
    Prices = Table.SelectRows(Rows, each [date] <> "")
in
    Prices
`;
}

const typeScript = (url) => `const url = ${quoted(url)};
const key = process.env['COMMODITY_PRICES_KEY'] ?? '${PLACEHOLDER}';

// A redirect would carry the key to another address.
const answer = await fetch(url, { headers: { 'x-api-key': key }, redirect: 'manual' });
if (!answer.ok) throw new Error(\`\${answer.status}: \${await answer.text()}\`);
// Every number is text, so that no digit is lost.
const asWritten = (_name, value, context) => (typeof value === 'number' ? context.source : value);
const { data } = JSON.parse(await answer.text(), asWritten);
const points = data.flatMap(({ code, series }) =>
  series.map((point) => ({ code, ...point })),
);
console.log(points.length, 'points');
`;

/**
 * Programs that fetch a request.
 * @param url the whole address of the request
 * @param csv the same for a CSV file
 */
export const recipesOf = (url, csv) => [
  { id: 'curl', name: 'curl', text: curl(csv) },
  { id: 'python', name: 'Python', text: python(csv) },
  { id: 'r', name: 'R', text: r(csv) },
  { id: 'power-query', name: 'Excel (Power Query)', text: powerQuery(csv) },
  { id: 'typescript', name: 'TypeScript', text: typeScript(url) },
];
