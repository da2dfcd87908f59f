import { createRequire } from 'node:module';

/** The command name in help and messages: of the installed package, or of a checkout. */
export const PROGRAM: string = /[\\/]node_modules[\\/]/.test(import.meta.filename)
  ? 'commodity-prices'
  : './prices';

/**
 * Node options of the service. In a young generation of 8 MB, the buffers of large answers are
 * collected soon after they are sent: by default 64 MB of them collect first, which causes a
 * collection of everything. V8 uses four more threads for that by default: with one, a collection
 * takes less CPU, and half as long on a machine of two cores. On a busy machine V8 may learn to
 * allocate the pieces of request bodies in the old generation: 16 bodies in chunks of one byte then
 * made 150 MB of garbage before a collection, instead of 10. The options apply only from the start
 * of a process, so `npm start`, the image and `./prices` set them.
 */
export const NODE_FLAGS: readonly string[] = [
  '--max-semi-space-size=8',
  '--no-allocation-site-pretenuring',
  '--v8-pool-size=1',
];

/** Version of the software, from package.json. */
export const VERSION: string = createRequire(import.meta.url)('../../package.json').version;
