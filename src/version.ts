import { createRequire } from 'node:module';

/** Version of the software, from package.json. */
export const VERSION: string = createRequire(import.meta.url)('../package.json').version;
