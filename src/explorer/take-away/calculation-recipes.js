// A calculation as programs. Each reads the key from COMMODITY_PRICES_KEY.
import { inQuery, PLACEHOLDER, quoted, shell } from './recipes.js';

const curl = (url, body) => `curl -sS --fail-with-body --compressed ${shell(url)} \\
  -H "x-api-key: \${COMMODITY_PRICES_KEY:-${PLACEHOLDER}}" \\
  -H 'content-type: application/json' -H 'accept: text/csv' \\
  -d ${shell(JSON.stringify(body))}
`;

/** JSON as Python: a text, because JSON has other words for true and null. */
const python = (url, body) => `import json, os, sys, urllib.error, urllib.request

URL = ${quoted(url)}
KEY = os.environ.get("COMMODITY_PRICES_KEY", "${PLACEHOLDER}")
CALCULATION = json.loads(${quoted(JSON.stringify(body))})

class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # A redirect would carry the key to another address.

request = urllib.request.Request(URL, data=json.dumps(CALCULATION).encode(),
    headers={"x-api-key": KEY, "content-type": "application/json"})
try:
    with urllib.request.build_opener(NoRedirect).open(request, timeout=60) as answer:
        # Every number is text, so that no digit is lost.
        results = json.loads(answer.read(), parse_float=str, parse_int=str)["data"]
except urllib.error.HTTPError as error:
    body = error.read().decode(errors="replace")
    try:
        problem = json.loads(body)
        body = "\\n".join([problem["detail"], *(
            "{pointer}: {detail}".format(**each) for each in problem.get("errors", []))])
    except (ValueError, KeyError):
        pass  # The answer of a proxy is no problem document of the service.
    sys.exit(f"{error.code}: {body}")
for each in results:
    print(each["anchor"], each["value"], each["unit"], each["status"], sep="\\t")
`;

const typeScript = (url, body) => `const url = ${quoted(url)};
const key = process.env['COMMODITY_PRICES_KEY'] ?? '${PLACEHOLDER}';
const calculation = ${JSON.stringify(body, null, 2)};

// A redirect would carry the key to another address.
const answer = await fetch(url, {
  method: 'POST',
  headers: { 'x-api-key': key, 'content-type': 'application/json' },
  body: JSON.stringify(calculation),
  redirect: 'manual',
});
const text = await answer.text();
if (!answer.ok) {
  // The answer of a proxy is no problem document of the service.
  const isProblem = answer.headers.get('content-type')?.includes('json');
  const { detail, errors = [] } = isProblem ? JSON.parse(text) : { detail: text };
  console.error(\`\${answer.status}: \${detail}\`, errors);
  process.exit(1);
}
// Every number is text, so that no digit is lost.
const asWritten = (_name, value, context) => (typeof value === 'number' ? context.source : value);
const { data } = JSON.parse(text, asWritten);
console.table(data.map(({ anchor, value, unit, status }) => ({ anchor, value, unit, status })));
`;

function powerQuery(url, body) {
  const { origin, pathname } = new URL(url);
  return `let
    Calculation = ${inQuery(JSON.stringify(body))},
    // Content makes it a POST.
    Answer = Web.Contents(${inQuery(origin)}, [
        RelativePath = ${inQuery(pathname.slice(1))},
        Headers = [#"x-api-key" = ${inQuery(PLACEHOLDER)}, #"content-type" = "application/json",
            accept = "text/csv"],
        ManualStatusHandling = {400, 401, 403, 404, 406, 413, 429, 500, 502, 503, 504},
        Content = Text.ToBinary(Calculation)]),
    Status = Value.Metadata(Answer)[Response.Status],
    // The reason of the service; the answer of a proxy is no JSON.
    Reason = try Json.Document(Answer)[detail] otherwise "The service answered " & Text.From(Status),
    Rows = if Status = 200
        then Table.PromoteHeaders(Csv.Document(Answer, [Delimiter = ",", Encoding = 65001]))
        else error Error.Record("Commodity Prices", Reason),
    // The numbers have a decimal point, whatever the settings of this computer are.
    Results = Table.TransformColumnTypes(Rows, {
        {"anchor", type date}, {"value", type number}, {"unit", type text}, {"status", type text}},
        "en-US")
in
    Results
`;
}

/**
 * Programs that send a calculation.
 * @param url the whole address of the service
 * @param body the body of the request
 */
export const calculationRecipes = (url, body) => [
  { id: 'curl', name: 'curl', text: curl(url, body) },
  { id: 'python', name: 'Python', text: python(url, body) },
  { id: 'power-query', name: 'Excel (Power Query)', text: powerQuery(url, body) },
  { id: 'typescript', name: 'TypeScript', text: typeScript(url, body) },
];
