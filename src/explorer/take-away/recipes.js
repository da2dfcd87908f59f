// The shown request as programs. Each reads the key from COMMODITY_PRICES_KEY. Rows without a date are
// prices without points.

/** Stands for a key that the environment does not have. */
export const PLACEHOLDER = 'put your key here';

/** Cells of a row before the name, which may have commas. */
const SHOWN_CELLS = 7;

/** A single-quoted shell string. */
export const shell = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** A double-quoted string of Python, R and TypeScript, all of which accept JSON strings. */
export const quoted = (text) => JSON.stringify(text);

/** A double-quoted string of Power Query, where `#(` begins an escape sequence. */
export const inQuery = (text) => `"${text.replaceAll('"', '""').replaceAll('#(', '#(#)(')}"`;

const curl = (url) => `curl -sS --fail-with-body --compressed ${shell(url)} \\
  -H "x-api-key: \${COMMODITY_PRICES_KEY:-${PLACEHOLDER}}" \\
  -o prices.csv ||
  # The reason of the service, if it has answered.
  { cat prices.csv >&2; exit 1; }
# The table without names. A price without points has a row without a date.
cut -d, -f1-${SHOWN_CELLS} prices.csv | grep -e '^code,' -e '^[^,]*,[0-9]'
`;

const python = (url) => `import csv, io, json, os, sys, urllib.error, urllib.request

URL = ${quoted(url)}
KEY = os.environ.get("COMMODITY_PRICES_KEY", "${PLACEHOLDER}")

class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # A redirect would carry the key to another address.

request = urllib.request.Request(URL, headers={"x-api-key": KEY})
try:
    with urllib.request.build_opener(NoRedirect).open(request, timeout=60) as answer:
        # Every cell is text, so that no digit is lost.
        rows = list(csv.DictReader(io.TextIOWrapper(answer, "utf-8", newline="")))
except urllib.error.HTTPError as error:
    body = error.read().decode(errors="replace")
    try:
        body = json.loads(body)["detail"]
    except (ValueError, KeyError):
        pass  # The answer of a proxy is no problem document of the service.
    sys.exit(f"{error.code}: {body}")
# A price without points has a row without a date.
points = [row for row in rows if row["date"]]
columns = [name for name in rows[0] if name != "name"] if rows else []
for row in [dict(zip(columns, columns)), *points]:
    print("\t".join(row[name] for name in columns))
`;

const r = (url) => `address <- ${quoted(url)}
key <- Sys.getenv("COMMODITY_PRICES_KEY", "${PLACEHOLDER}")

# curl follows no redirect, which would carry the key along. It reads the header from its input.
file <- tempfile()
status <- system2("curl", c("-sS", "--fail-with-body", "-H", "@-", "-o", shQuote(file),
  shQuote(address)), input = paste0("x-api-key: ", key))
if (status != 0) {
  # The reason of the service, if it has answered.
  if (file.exists(file)) message(paste(readLines(file, warn = FALSE), collapse = "\\n"))
  quit(status = 1)
}
# Every column is text, so that no digit is lost: as.numeric() where you calculate.
prices <- read.csv(file, colClasses = "character", na.strings = character(0),
  check.names = FALSE, encoding = "UTF-8")
prices <- prices[prices$date != "", ]  # A price without points has a row without a date.
print(prices[names(prices) != "name"], row.names = FALSE)
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
        ManualStatusHandling = {400, 401, 403, 404, 406, 414, 429, 500, 502, 503, 504},
        Query = [${fields.join(', ')}]]),
    Status = Value.Metadata(Answer)[Response.Status],
    // The reason of the service; the answer of a proxy is no JSON.
    Reason = try Json.Document(Answer)[detail] otherwise "The service answered " & Text.From(Status),
    Rows = if Status = 200
        then Table.PromoteHeaders(Csv.Document(Answer, [Delimiter = ",", Encoding = 65001]))
        else error Error.Record("Commodity Prices", Reason),
    // A price without points has a row without a date.
    Points = Table.SelectRows(Rows, each [date] <> ""),
    // The numbers have a decimal point, whatever the settings of this computer are.
    Prices = Table.TransformColumnTypes(Points, {
        {"code", type text}, {"date", type date}, {"low", type number}, {"mid", type number},
        {"high", type number}, {"currency", type text}, {"unitOfMeasure", type text},
        {"name", type text}}, "en-US")
in
    Prices
`;
}

const typeScript = (url) => `const url = ${quoted(url)};
const key = process.env['COMMODITY_PRICES_KEY'] ?? '${PLACEHOLDER}';

// A redirect would carry the key to another address.
const answer = await fetch(url, { headers: { 'x-api-key': key }, redirect: 'manual' });
const text = await answer.text();
if (!answer.ok) {
  // The answer of a proxy is no problem document of the service.
  const isProblem = answer.headers.get('content-type')?.includes('json');
  console.error(\`\${answer.status}: \${isProblem ? JSON.parse(text).detail : text}\`);
  process.exit(1);
}
// Every number is text, so that no digit is lost.
const asWritten = (_name, value, context) => (typeof value === 'number' ? context.source : value);
const { data } = JSON.parse(text, asWritten);
const points = data.flatMap(({ code, currency, unitOfMeasure, series }) =>
  series.map(({ date, low, mid, high }) => {
    return { code, date, low, mid, high, currency: currency?.iso, unit: unitOfMeasure.name };
  }),
);
console.table(points);
`;

/**
 * Programs that fetch a request.
 * @param url the whole address of the request
 * @param csv the same for a CSV file with the columns of `files.js` for programs
 */
export const recipesOf = (url, csv) => [
  { id: 'curl', name: 'curl', text: curl(csv) },
  { id: 'python', name: 'Python', text: python(csv) },
  { id: 'r', name: 'R', text: r(csv) },
  { id: 'power-query', name: 'Excel (Power Query)', text: powerQuery(csv) },
  { id: 'typescript', name: 'TypeScript', text: typeScript(url) },
];
