import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { PROGRAM } from '../std/program.ts';
import { command, json, option } from './command.ts';
import { printLines } from './output.ts';

const FILE = fileURLToPath(new URL('../../openapi.yaml', import.meta.url));

/** The OpenAPI document with the default settings, as YAML and as JSON. */
async function openapiTexts(): Promise<{ readonly yaml: string; readonly json: string }> {
  // Loaded lazily, because no other command needs the web server.
  const { buildApp } = await import('../app.ts');
  const { openapiYaml } = await import('../http/routes/documents.ts');
  const { configOf } = await import('../config/config.ts');
  const { openWriter } = await import('../process/database.ts');
  const config = configOf({});
  // Never connects, because the application handles no requests.
  const client = openWriter({ url: 'postgres://127.0.0.1/none' }, config);
  const app = await buildApp({ config, client });
  try {
    await app.ready();
    return { yaml: await openapiYaml(app), json: JSON.stringify(app.swagger(), null, 2) };
  } finally {
    await app.close();
    await client.close();
  }
}

/** Adds `openapi`. */
export const addOpenapi = command({
  name: 'openapi',
  summary: 'print the OpenAPI document',
  description: 'Prints the OpenAPI 3.1 document of the service as YAML. No database is needed.',
  options: [json('print JSON'), option('--write', 'write openapi.yaml of this project instead')],
  help: `\nExample:\n  ${PROGRAM} openapi --json > openapi.json`,
  async run(options: { write?: true; json?: true }) {
    const { yaml, json: text } = await openapiTexts();
    if (options.write) {
      await writeFile(FILE, yaml);
      printLines('Wrote openapi.yaml.');
    } else printLines((options.json ? text : yaml).trimEnd());
  },
});
