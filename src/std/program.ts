import { createRequire } from 'node:module';

/** The command name in help and messages: of the installed package, or of a checkout. */
export const PROGRAM: string = /[\\/]node_modules[\\/]/.test(import.meta.filename)
  ? 'commodity-prices'
  : './prices';

/** Version of the software, from package.json. */
export const VERSION: string = createRequire(import.meta.url)('../../package.json').version;
