import { appendFileSync } from 'node:fs';
import { Transform } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { withoutProgram } from './groups.ts';
import { TapReader } from './tally.ts';

/**
 * Reporter for pipes: prints a line for each test file, and every failure with its details. It
 * copies its input to the file TAP_OUTPUT, where it is counted. The runner needs a default export.
 */
export default class Reporter extends Transform {
  readonly #decoder = new StringDecoder('utf8');
  readonly #reader = new TapReader({
    onFile: (line) => {
      const named = withoutProgram(line).replace(/^((?:not )?ok) \d+ - /, '$1 ');
      this.push(`${named}\n`);
    },
    onFailure: (titles, details) => {
      const text = details.map((line) => `    ${line}\n`).join('');
      // The name of a group says nothing: the test file is the next title.
      const paths = titles.map(withoutProgram);
      const named = paths.filter((each) => each !== '' && !each.endsWith('.test.mjs'));
      this.push(`FAILED ${named.join(' › ')}\n${text}`);
    },
  });
  #rest = '';

  override _transform(chunk: Buffer | string, _encoding: string, done: () => void): void {
    const text = typeof chunk === 'string' ? chunk : this.#decoder.write(chunk);
    appendFileSync(process.env['TAP_OUTPUT'] ?? '/dev/null', text);
    const lines = `${this.#rest}${text}`.split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#reader.line(line);
    done();
  }

  override _flush(done: () => void): void {
    this.#reader.line(this.#rest);
    this.#reader.end();
    done();
  }
}
