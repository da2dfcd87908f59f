import { execFile } from 'node:child_process';
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { dataFolder } from './support/running.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const run = promisify(execFile);

/** A package that stands in for one of OpenTelemetry, and shows what it is given. */
async function packageOf(folder: string, name: string, text: string): Promise<void> {
  const place = join(folder, 'node_modules', name);
  await mkdir(place, { recursive: true });
  await writeFile(join(place, 'package.json'), '{ "type": "module", "exports": "./index.js" }');
  await writeFile(join(place, 'index.js'), text);
}

/** Runs a script as the service is run with traces, in a folder like that of the service. */
async function traced(folder: string, script: string): Promise<{ stdout: string; stderr: string }> {
  await cp(join(ROOT, 'deploy/tracing.mjs'), join(folder, 'deploy/tracing.mjs'));
  await symlink(join(ROOT, 'src'), join(folder, 'src'));
  const args = ['--import', './deploy/tracing.mjs', '--eval', script];
  return run(process.execPath, args, { cwd: folder });
}

const KEY = `cps_live_7Kq3ZbT0xP_${'a'.repeat(38)}`;

const SHOW = `
  const { startIncomingSpanHook: begin, applyCustomAttributesOnSpan: end } =
    traces.instrumentations[0]['@opentelemetry/instrumentation-http'];
  const named = (url, statusCode) => {
    let name = null;
    end({ updateName: (text) => { name = text; } }, { method: 'GET', url }, { statusCode });
    return name;
  };
  const sent = 'http://a.example/v3/${KEY}?key=${KEY}';
  const all = Object.entries(traces.instrumentations[0]);
  const off = all.filter(([, { enabled }]) => enabled === false);
  console.log(JSON.stringify({
    off: off.map(([name]) => name.replace('@opentelemetry/instrumentation-', '')),
    pg: traces.instrumentations[0]['@opentelemetry/instrumentation-pg'],
    begun: begin({ url: sent }),
    held: Object.keys(begin({ url: sent })),
    names: [named('/v3/prices/nickel?key=${KEY}', 200), named('/x', 404), named(undefined, 200)],
  }));
`;

t.test('a trace holds nothing that a client sent but its path, without secrets', async (t) => {
  const folder = await dataFolder(t);
  await packageOf(
    folder,
    '@opentelemetry/sdk-node',
    `export class NodeSDK {
      constructor(given) { globalThis.traces = given; }
      start() {}
      shutdown() {}
    }`,
  );
  await packageOf(
    folder,
    '@opentelemetry/auto-instrumentations-node',
    'export const getNodeAutoInstrumentations = (settings) => settings;',
  );
  const { begun, held, names, off, pg } = JSON.parse((await traced(folder, SHOW)).stdout);
  t.same(begun, { 'url.path': '/v3/[secret]' });
  const left = ['url.query', 'user_agent.original', 'http.url', 'http.target', 'http.user_agent'];
  t.same(held, ['url.path', ...left], 'what is set to nothing is left out');
  t.same(names, ['GET /v3/prices/nickel', null, null]);
  t.same(off, ['dns', 'fs', 'net']);
  t.same(pg, { enhancedDatabaseReporting: false, requireParentSpan: true }, 'only of requests');
});

t.test('a start with traces and without OpenTelemetry says what to install', async (t) => {
  await t.rejects(traced(await dataFolder(t), ''), {
    message: /install OpenTelemetry first/,
  });
});
