import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { parse } from 'yaml';
import { programOnPath } from '../support/process/browser.ts';

interface RuleTest {
  readonly input_series: readonly { readonly series: string }[];
  readonly alert_rule_test: readonly {
    readonly alertname: string;
    readonly exp_alerts: readonly unknown[];
  }[];
}

interface Rule {
  readonly alert: string;
  readonly expr: string;
}

const pathOf = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const textOf = (path: string): string => readFileSync(pathOf(path), 'utf8');

const RULES = 'deploy/alerts.yml';
const TESTS = 'test/project/alerts.yml';
const CONFIGURATIONS = [
  'deploy/prometheus.yml',
  'deploy/cluster/prometheus.yml',
  'deploy/kubernetes/prometheus.yml',
];
const JOB = 'commodity-prices';

const rules: readonly Rule[] = parse(textOf(RULES)).groups.flatMap(
  (group: { readonly rules: readonly Rule[] }) => group.rules,
);

const PROMTOOL = programOnPath(['promtool']);

/** Runs promtool; a failed check is its output. */
function promtool(
  test: Pick<typeof t, 'comment' | 'equal'>,
  title: string,
  ...args: string[]
): void {
  if (PROMTOOL === null) {
    test.comment(`${title}: not run, as this machine lacks promtool (apt-get install prometheus)`);
    return;
  }
  const { status, stdout, stderr } = spawnSync(PROMTOOL, args, { encoding: 'utf8' });
  test.equal(status, 0, `${title}: ${stdout}${stderr}`);
}

t.test('each alert fires in one test, and is quiet in another that has its metrics', (t) => {
  const tests = parse(textOf(TESTS)).tests as readonly RuleTest[];
  t.ok(rules.length > 10);
  for (const { alert, expr } of rules) {
    const metrics: readonly string[] = expr.match(/\b(up|(prices|nodejs)_\w+)/g) ?? [];
    const of = (fires: boolean) =>
      tests.filter(
        ({ input_series: series, alert_rule_test: checks }) =>
          checks.length > 0 &&
          checks.every(
            (each) => each.alertname === alert && each.exp_alerts.length > 0 === fires,
          ) &&
          series.some((each) => metrics.includes(each.series.split('{')[0] ?? '')),
      ).length;
    t.ok(of(true) > 0, `${alert} fires`);
    t.ok(of(false) > 0, `${alert} is quiet`);
  }
  promtool(t, TESTS, 'test', 'rules', pathOf(TESTS));
  t.end();
});

t.test('the rules and the configurations of Prometheus are valid', (t) => {
  promtool(t, RULES, 'check', 'rules', pathOf(RULES));
  for (const path of CONFIGURATIONS) {
    // Prometheus has the rules beside its configuration. Debian's has no discovery of Kubernetes.
    const folder = t.testdir();
    copyFileSync(pathOf(RULES), join(folder, 'alerts.yml'));
    const text = textOf(path).replace(/kubernetes_sd_configs:(\n {6}.+)+/, 'static_configs: []');
    writeFileSync(join(folder, 'prometheus.yml'), text);
    promtool(t, path, 'check', 'config', join(folder, 'prometheus.yml'));
  }
  t.end();
});

t.test('every configuration scrapes the job that the alerts and the dashboard name', (t) => {
  for (const path of CONFIGURATIONS) {
    const { scrape_configs: scraped, rule_files: files } = parse(textOf(path));
    t.same(
      scraped.map((each: { job_name: string }) => each.job_name),
      [JOB],
      path,
    );
    t.same(files, ['alerts.yml'], path);
  }
  for (const path of [RULES, 'deploy/grafana/dashboard.json']) {
    const named = [...textOf(path).matchAll(/job=~?\\?"([^"\\]*)/g)].map(([, job]) => job);
    t.same([...new Set(named)], [JOB], path);
  }
  // A second job with the same pods would double every sum.
  t.notMatch(textOf('deploy/kubernetes/service.yaml'), 'prometheus.io/scrape');
  t.end();
});

t.test('Prometheus scrapes every instance that Compose and Kubernetes run', (t) => {
  const { services } = parse(textOf('docker-compose.yml'), { merge: true });
  const serving = Object.keys(services).filter((name) => services[name].environment?.METRICS_PORT);
  const targetsOf = (path: string): readonly string[] =>
    parse(textOf(path)).scrape_configs[0].static_configs[0].targets;
  const [single = '', cluster = '', pods = ''] = CONFIGURATIONS;
  const scraped = [...targetsOf(single), ...targetsOf(cluster)];
  t.same(
    scraped.sort(),
    serving.map((name) => `${name}:${services[name].environment.METRICS_PORT}`).sort(),
  );
  t.match(services.prometheus.volumes, [
    /^\.\/deploy\/\$\{PROMETHEUS_CONFIG:-prometheus\.yml\}:\/etc\/prometheus\/prometheus\.yml:ro$/,
    /^\.\/deploy\/alerts\.yml:\/etc\/prometheus\/alerts\.yml:ro$/,
  ]);
  const [discovered] = parse(textOf(pods)).scrape_configs;
  const [deployment] = textOf('deploy/kubernetes/service.yaml')
    .split(/^---$/m)
    .map((each) => parse(each));
  const { metadata, spec } = deployment.spec.template;
  t.equal(discovered.kubernetes_sd_configs[0].selectors[0].label, `app=${metadata.labels.app}`);
  const ports = spec.containers[0].ports.map((each: { name: string }) => each.name);
  t.ok(ports.includes(discovered.relabel_configs[0].regex));
  t.end();
});
