import { readFileSync } from 'node:fs';
import t from 'tap';
import { parseAllDocuments } from 'yaml';

const read = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/** Share of its limit that the measured process may use: the kernel ends it at the limit. */
const SHARE_MAX = 0.8;

const MIB: Readonly<Record<string, number>> = { Mi: 1, Gi: 1_024 };

interface Manifest {
  readonly spec?: {
    readonly template?: {
      readonly spec: {
        readonly containers: readonly {
          readonly resources?: { readonly limits?: { readonly memory?: string } };
        }[];
      };
    };
  };
}

t.test('the memory limit of a pod is well above the largest measured memory', async (t) => {
  const [, figure = ''] =
    /largest\s+memory\s+of\s+the\s+process\s+was\s+([\d,]+) MiB/.exec(read('docs/benchmarks.md')) ??
    [];
  const measured = Number(figure.replaceAll(',', ''));
  t.ok(measured > 500, `${measured} MiB were measured`);
  const limits = parseAllDocuments(read('deploy/kubernetes/service.yaml')).flatMap((each) => {
    const containers = (each.toJS() as Manifest).spec?.template?.spec.containers ?? [];
    return containers.map(({ resources }) => resources?.limits?.memory ?? '');
  });
  t.ok(limits.length > 0);
  for (const limit of limits) {
    const [, amount, unit = ''] = /^(\d+)(Mi|Gi)$/.exec(limit) ?? [];
    const mib = Number(amount) * (MIB[unit] ?? Number.NaN);
    t.ok(measured <= SHARE_MAX * mib, `${measured} MiB of ${limit}`);
  }
  // The containers of Compose have no limit.
  t.notMatch(read('docker-compose.yml'), /mem_limit|memory:/);
});
