import type { Elsewhere } from '../support/run/fault-table.ts';

/** Files that bound only counts or seconds: they may run beside others. */
export const BESIDE_OTHERS: readonly string[] = [
  'test/faults/replica/as-of-standby.test.ts',
  'test/faults/catalogue.test.ts',
  'test/faults/database/clocks.test.ts',
  'test/faults/process/configuration.test.ts',
  'test/faults/database/corruption.test.ts',
  'test/faults/process/killed-load.test.ts',
  'test/faults/credentials/forged-tokens.test.ts',
  'test/faults/requests/injection.test.ts',
  'test/faults/credentials/issuer-keys.test.ts',
  'test/faults/credentials/key-expiry.test.ts',
  'test/faults/replica/lost-commits.test.ts',
  'test/faults/clients/python-client.test.ts',
  'test/faults/replica/min-revision.test.ts',
  'test/faults/load/rate-limits.test.ts',
  'test/faults/process/soak.test.ts',
  'test/faults/credentials/issuer-outage.test.ts',
  'test/faults/clients/typescript-client.test.ts',
  'test/faults/database/network.test.ts',
  'test/faults/database/time-zones.test.ts',
];

/** Faults that tests elsewhere cover, and faults without a test. */
export const FAULTS: Readonly<Record<string, Elsewhere>> = {
  F13: {
    title: 'disk full',
    criterion:
      'a load ends with exit code 1 and says so; nothing of it is left, and reading goes on ' +
      '(without room for the log PostgreSQL ends, and comes back with it); it goes in once there ' +
      'is room',
    files: ['test/ingest/disk-full.test.ts'],
    why:
      'A small file system is filled to several degrees and loaded into; another one, with the ' +
      'log of PostgreSQL on it, has no room at all',
  },
  F18: {
    title: 'malformed HTTP',
    criterion:
      'a 4xx problem, and the connection is closed; no byte of it gets into another answer; ' +
      'the service goes on',
    files: ['test/sockets/malformed.test.ts'],
  },
  F20: {
    title: 'a fuzzer of somebody else',
    byHand: '0 × 5xx and 0 undocumented statuses in 2,073 requests',
    why: 'See [its run](fault-runs.md#a-fuzzer-of-another-project); the one of this project is F19',
  },
  F22: {
    title: 'prototype pollution',
    criterion: '400 for each such name; afterwards ({}).polluted is undefined',
    files: ['test/http/refusals/400-many.test.ts'],
  },
  F26: {
    title: 'filters against an oracle',
    criterion:
      '≥ 5,000 random requests over all markets: the same records and series as the plain ' +
      'tables have; one filter more never adds a record; two parts are the whole',
    files: ['test/prices/filters.property.test.ts', 'test/prices/metamorphic.test.ts'],
  },
  F27: {
    title: 'records of another market',
    criterion: 'every code of all markets asked of each: 0 records of another',
    files: ['test/prices/metamorphic.test.ts'],
  },
  F28: {
    title: 'forged tokens',
    criterion: 'each a 401 with the same bytes, and no statement; no address in a token is asked',
    files: ['test/auth/forgeries.test.ts', 'test/auth/key-confusion.test.ts'],
  },
  F29: {
    title: 'clocks that differ',
    criterion: 'good to the second: 30 s after exp, 30 s before nbf and iat, and no longer',
    files: ['test/auth/claims.test.ts'],
  },
  F33: {
    title: 'secrets in logs and answers',
    criterion:
      '0 lines of the log, of that of PostgreSQL at its most talkative and of what a crash ' +
      'says, 0 rows of any table and 0 answers with a key or a token; only the public id is shown',
    files: [
      'test/sockets/secrets.test.ts',
      'test/sockets/secrets-kept.test.ts',
      'test/auth/log.test.ts',
    ],
    why: 'A core dump is memory, and holds what requests under way have sent: switch them off',
  },
  F34: {
    title: 'the matrix of scopes',
    criterion:
      '17 × each scope, as key and as token: its own market 200, every other 403; no ' +
      'credential 401, two 400',
    files: ['test/http/scopes.test.ts'],
  },
  F39: {
    title: 'a loader killed at any moment',
    criterion:
      'the data are those of before or those of after, and the next run ends with all of it',
    files: ['test/ingest/killed/killed.test.ts', 'test/archive/killed.test.ts'],
  },
  F40: {
    title: 'the same loads at once',
    criterion: 'one effect; the same data as one after another; the counts add up',
    files: ['test/ingest/parallel.test.ts'],
  },
  F41: {
    title: 'readers during loads',
    criterion:
      'each answer is one revision, never a mixture; a reader of the feed sees every change ' +
      'once, in order',
    files: ['test/prices/one-snapshot.test.ts', 'test/changes/changes-exactly-once.test.ts'],
  },
  F42: {
    title: 'hostile files',
    criterion: 'refused in words, by line or by part; nothing is stored',
    files: ['test/ingest/rejects/hostile.test.ts', 'test/ingest/mapping/hostile.test.ts'],
  },
  F43: {
    title: 'migrations under load',
    criterion:
      '0 requests fail, and their p99 grows ≤ 1 s, from the oldest schema that can be used and ' +
      'on that of the next version; a table in use stops no reader; a runner that was killed ' +
      'goes on where it was; from every version before all data stay',
    files: [
      'test/migrations/live.test.ts',
      'test/migrations/running.test.ts',
      'test/migrations/versions.test.ts',
    ],
  },
  F44: {
    title: 'all data taken out and back',
    criterion: 'all contents and answers of the copy are those of the original, byte for byte',
    files: ['test/cli/drill.test.ts', 'test/archive/same-answers.test.ts'],
    why: 'Back to a moment was done by hand: [operations](operations.md)',
  },
};
