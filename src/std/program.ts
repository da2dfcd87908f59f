import { createRequire } from 'node:module';

/** The command name in help and messages: of the installed package, or of a checkout. */
export const PROGRAM: string = /[\\/]node_modules[\\/]/.test(import.meta.filename)
  ? 'commodity-prices'
  : './prices';

/**
 * Node options of the service. The default young generation grows to twice this size, and a process
 * does not return that memory. They apply only from the start of a process, so `npm start`, the
 * image and `./prices` set them.
 */
export const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=16'];

/** Version of the software, from package.json. */
export const VERSION: string = createRequire(import.meta.url)('../../package.json').version;
