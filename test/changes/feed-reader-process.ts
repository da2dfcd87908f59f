// A feed reader process: appends each change to a file and resumes after the last complete line.
// Arguments: the file, then the addresses of the service.
import { appendFileSync, existsSync, readFileSync, truncateSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

const [file = '', ...addresses] = process.argv.slice(2);
const key = process.env['SERVICE_KEY'] ?? '';

/** The position of the last complete line; removes a partial line that a kill left. */
function lastPosition(): string | null {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const end = text.lastIndexOf('\n') + 1;
  if (end < text.length) truncateSync(file, Buffer.byteLength(text.slice(0, end)));
  const line = text.slice(0, end).trimEnd().split('\n').at(-1) ?? '';
  return line === '' ? null : JSON.parse(line).seq;
}

/** Writes in small pieces, so that a kill may come between any two bytes. */
function append(line: string): void {
  for (let at = 0; at < line.length; at += 50) appendFileSync(file, line.slice(at, at + 50));
}

let after = lastPosition();
for (let turn = 0; ; turn += 1) {
  const parameter = after === null ? '' : `&after=${after}`;
  try {
    const answer = await fetch(`${addresses[turn % addresses.length]}?limit=7&wait=1${parameter}`, {
      headers: { 'x-api-key': key, accept: 'application/x-ndjson' },
    });
    if (answer.status !== 200 && answer.status !== 204) throw new Error(await answer.text());
    const lines = (await answer.text()).split('\n').filter((line) => line !== '');
    for (const line of lines) append(`${line}\n`);
    after = answer.headers.get('x-next-seq') ?? after;
  } catch {
    // The server is down or not up yet.
    await pause(20);
  }
}
