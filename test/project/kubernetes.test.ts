import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import t from 'tap';
import { parseAllDocuments } from 'yaml';
import { SECRETS } from '../../src/config/environment.ts';
import { SETTINGS } from '../../src/config/settings.ts';

const textOf = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

interface Container {
  readonly name: string;
  readonly env?: readonly { readonly name: string; readonly value: string }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}

interface Pod {
  readonly containers: readonly Container[];
  readonly volumes: readonly {
    readonly name: string;
    readonly secret?: { readonly secretName: string };
  }[];
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly template?: { readonly spec: Pod };
    readonly jobTemplate?: { readonly spec: { readonly template: { readonly spec: Pod } } };
  };
}

const manifests = ['service', 'webhooks', 'jobs'].flatMap((name) =>
  parseAllDocuments(textOf(`deploy/kubernetes/${name}.yaml`)).map(
    (each) => each.toJS() as Manifest,
  ),
);

const check = new Ajv2020({ allErrors: true, allowUnionTypes: true }).compile(
  JSON.parse(textOf('test/fixtures/kubernetes.schema.json')),
);

t.test(
  'each manifest has only members of the API of Kubernetes, with values of their types',
  async (t) => {
    t.equal(manifests.length, 8);
    for (const each of manifests) {
      t.ok(check(each), `${each.kind} ${each.metadata.name}: ${JSON.stringify(check.errors)}`);
    }
    const text = JSON.stringify(manifests);
    for (const [right, wrong] of [
      ['"restartPolicy"', '"restartpolicy"'],
      ['"backoffLimit":3', '"backoffLimit":"3"'],
      ['"concurrencyPolicy":"Forbid"', '"concurrencyPolicy":"Never"'],
      ['"readOnlyRootFilesystem":true', '"readOnlyRootFilesystem":false'],
    ] as const) {
      t.ok(text.includes(right), right);
      const broken = JSON.parse(text.replaceAll(right, wrong)) as Manifest[];
      t.ok(
        broken.some((each) => !check(each)),
        `${wrong} is refused`,
      );
    }
  },
);

/** The pods of a manifest, with its name. */
const pods = manifests.flatMap(({ metadata, spec }) => {
  const pod = spec.jobTemplate?.spec.template.spec ?? spec.template?.spec;
  return pod === undefined ? [] : [[metadata.name, pod] as const];
});

t.test(
  'each account has a Secret of its own, and a pod mounts only those that it uses',
  async (t) => {
    const secretsOf = ({ volumes }: Pod): string[] =>
      volumes.flatMap(({ secret }) => secret?.secretName ?? []);
    t.same(Object.fromEntries(pods.map(([name, pod]) => [name, secretsOf(pod)])), {
      prices: ['prices-service', 'prices-usage'],
      'prices-migrate': ['prices-database-superuser'],
      'prices-roles': [
        'prices-database-superuser',
        ...['service', 'usage', 'keys', 'loader', 'webhooks'].map((name) => `prices-${name}`),
      ],
      'prices-webhooks': ['prices-webhooks'],
      'prices-load-ecb': ['prices-loader'],
    });
    for (const [name, { containers, volumes }] of pods) {
      const known = new Set(volumes.map((each) => each.name));
      for (const { volumeMounts, env = [] } of containers) {
        t.ok(
          volumeMounts.every((each) => known.has(each.name)),
          `${name} mounts its volumes`,
        );
        const files = env.filter((each) => each.name.endsWith('_FILE')).map(({ value }) => value);
        for (const file of files) {
          t.ok(
            volumeMounts.some(({ mountPath }) => file === `${mountPath}/password`),
            `${name} mounts ${file}`,
          );
        }
      }
    }
  },
);

t.test('each variable of a manifest is a setting, and no address has a password', async (t) => {
  const known = new Set([
    ...Object.keys(SETTINGS),
    ...SECRETS.map((each) => `${each}_FILE`),
    // A variable of Node: name lookups of webhooks share its threads.
    'UV_THREADPOOL_SIZE',
  ]);
  for (const [name, { containers }] of pods) {
    for (const variable of containers.flatMap(({ env = [] }) => env)) {
      t.ok(known.has(variable.name), `${name}: ${variable.name}`);
      t.notMatch(variable.value, /:\/\/[^@/]*:[^@/]*@/, `${name}: ${variable.name}`);
    }
  }
});
