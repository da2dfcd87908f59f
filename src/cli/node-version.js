// Rejects Node versions without TypeScript support, which only report an unknown file extension.
// Plain JavaScript, so that these versions can run it.
import { existsSync, readFileSync } from 'node:fs';

const root = new URL('../../', import.meta.url);
const { engines } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
const needed = engines.node.replace('>=', '').split('.').map(Number);
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < needed[0] || (major === needed[0] && minor < needed[1])) {
  const why = `needs Node ${needed.join('.')} or newer, and this is ${process.versions.node}`;
  // Of the packages, only the development tools bring a Node. A package from npm has no lockfile.
  const own = existsSync(new URL('package-lock.json', root))
    ? 'npm ci installs one here, and '
    : '';
  const how = `; ${own}npm install --global node@${needed[0]} works without development tools`;
  process.stderr.write(`commodity-prices: ${why}${how}\n`);
  process.exitCode = 2;
}
