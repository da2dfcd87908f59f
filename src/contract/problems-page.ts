import { PROBLEMS, VIOLATIONS, WARNINGS } from '../errors.ts';

const row = (code: string, texts: readonly string[], id: string = code): string => {
  const cells = texts.map((each) => `<td>${each}</td>`).join('');
  return `<tr id="${id}"><td><code>${code}</code></td>${cells}</tr>`;
};

/** The page that the `type` of every problem points to. */
export const problemsPage = (): string => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Error codes: Commodity Prices Service</title>
<meta name="viewport" content="width=device-width"></head>
<body>
<h1>Error codes</h1>
<p>Every refusal is <code>application/problem+json</code>; its <code>code</code> never changes its
meaning. <code>detail</code> says what to do instead.</p>
<table>
<thead><tr><th>code</th><th>status</th><th>meaning</th></tr></thead>
<tbody>
${Object.entries(PROBLEMS)
  .map(([code, [status, title]]) => row(code, [String(status), title]))
  .join('\n')}
</tbody>
</table>
<h2>Codes of single places, in <code>errors</code></h2>
<p>A request that breaks rules is refused as <code>validation_failed</code>, and <code>errors</code>
names each place with one of these codes. Two of them are also the <code>code</code> of the refusal:
<code>unknown_revision</code> and <code>invalid_cursor</code>. The client then discards its
revision, feed position or cursor and starts again; <code>errors</code> names the one place. A
request that breaks other rules too is refused as <code>validation_failed</code> first.</p>
<table>
<thead><tr><th>code</th><th>meaning</th></tr></thead>
<tbody>
${Object.entries(VIOLATIONS)
  .map(([code, text]) => row(code, [text], code in PROBLEMS ? `errors-${code}` : code))
  .join('\n')}
</tbody>
</table>
<h2>Codes of warnings, in <code>$metadata.warnings</code> of an answer</h2>
<table>
<thead><tr><th>code</th><th>meaning</th></tr></thead>
<tbody>
${Object.entries(WARNINGS)
  .map(([code, text]) => row(code, [text], `warning-${code}`))
  .join('\n')}
</tbody>
</table>
<p><a href="/docs">Documentation</a></p>
</body>
</html>
`;
