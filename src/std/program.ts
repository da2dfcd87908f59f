import { createRequire } from 'node:module';

/** The command name in help and messages: of the installed package, or of a checkout. */
export const PROGRAM: string = /[\\/]node_modules[\\/]/.test(import.meta.filename)
  ? 'commodity-prices'
  : './prices';

/**
 * Node options of the service. The default young generation grows to twice this size, and a process
 * does not return that memory. On a busy machine V8 may learn to allocate the pieces of request
 * bodies in the old generation: 16 bodies in chunks of one byte then made 150 MB of garbage before
 * a collection, instead of 10. The options apply only from the start of a process, so `npm start`,
 * the image and `./prices` set them.
 */
export const NODE_FLAGS: readonly string[] = [
  '--max-semi-space-size=16',
  '--no-allocation-site-pretenuring',
];

/** Version of the software, from package.json. */
export const VERSION: string = createRequire(import.meta.url)('../../package.json').version;
