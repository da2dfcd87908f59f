// Rejects Node versions without TypeScript support, which only report an unknown file extension.
// Plain JavaScript, so that these versions can run it.
import { readFileSync } from 'node:fs';

const { engines } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
);
const needed = engines.node.replace('>=', '').split('.').map(Number);
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < needed[0] || (major === needed[0] && minor < needed[1])) {
  const why = `needs Node ${needed.join('.')} or newer, and this is ${process.versions.node}`;
  process.stderr.write(`commodity-prices: ${why}\n`);
  process.exitCode = 2;
}
