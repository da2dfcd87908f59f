import { join } from 'node:path';

/** A file of the data folder, which `node test/run.ts --data [folder]` names. */
export function dataFile(...path: string[]): string {
  const folder = process.env['DATA_FOLDER'];
  if (!folder) throw new Error('DATA_FOLDER is not set: run npm run test:data');
  return join(folder, ...path);
}
