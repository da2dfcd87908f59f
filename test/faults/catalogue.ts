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
      'a load ends with exit code 1 and a message; nothing of it is stored, and reads ' +
      'continue (without space for its log, PostgreSQL ends, and returns with the space); the ' +
      'load succeeds once there is space',
    files: ['test/ingest/disk-full.test.ts'],
    why:
      'The test fills a small file system to several degrees and loads into it; a second file ' +
      'system, which contains the log of PostgreSQL, is full',
  },
  F18: {
    title: 'malformed HTTP',
    criterion:
      'a 4xx problem, and the connection is closed; no byte of the request appears in another ' +
      'answer; the service continues',
    files: ['test/sockets/malformed.test.ts'],
  },
  F20: {
    title: 'a third-party fuzzer',
    byHand: '0 × 5xx and 0 undocumented statuses in 2,073 requests',
    why:
      'See [its run](fault-runs.md#a-fuzzer-of-another-project); the fuzzer of this project is ' +
      'F19',
  },
  F22: {
    title: 'prototype pollution',
    criterion: '400 for each such name; ({}).polluted is undefined afterwards',
    files: ['test/http/refusals/400-many.test.ts'],
  },
  F26: {
    title: 'filters against an oracle',
    criterion:
      '≥ 5,000 random requests over all markets: the same records and series as in the plain ' +
      'tables; an additional filter never adds a record; the two parts of a divided list add ' +
      'up to the whole',
    files: ['test/prices/filters.property.test.ts', 'test/prices/metamorphic.test.ts'],
  },
  F27: {
    title: 'records of another market',
    criterion: 'every code is requested in every market: 0 records of another market',
    files: ['test/prices/metamorphic.test.ts'],
  },
  F28: {
    title: 'forged tokens',
    criterion:
      'each a 401 with the same bytes, and no statement; no address in a token is requested',
    files: ['test/auth/forgeries.test.ts', 'test/auth/key-confusion.test.ts'],
  },
  F29: {
    title: 'clock skew',
    criterion: 'exact to the second: 30 s after exp, 30 s before nbf and iat, and no longer',
    files: ['test/auth/claims.test.ts'],
  },
  F33: {
    title: 'secrets in logs and answers',
    criterion:
      '0 lines of the service log, of the most verbose PostgreSQL log and of the output of a ' +
      'crash, 0 rows of any table and 0 answers with a key or a token; only the public id is ' +
      'shown, and a key sent as the value of a filter in that PostgreSQL log',
    files: [
      'test/sockets/secrets.test.ts',
      'test/sockets/secrets-kept.test.ts',
      'test/auth/log.test.ts',
    ],
    why: 'A core dump is memory and contains the data of running requests: disable core dumps',
  },
  F34: {
    title: 'the matrix of scopes',
    criterion:
      'each market × each scope, as key and as token: 200 for its own market, 403 for every ' +
      'other; 401 without a credential, 400 with two',
    files: ['test/http/scopes.test.ts'],
  },
  F39: {
    title: 'a loader killed at any moment',
    criterion: 'the data are those before or those after the load, and the next run completes it',
    files: ['test/ingest/killed/killed.test.ts', 'test/archive/killed.test.ts'],
  },
  F40: {
    title: 'concurrent loads of the same files',
    criterion: 'one effect; the same data as by sequential loads; the counts add up',
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
    criterion: 'rejected with a message, by line or by part; nothing is stored',
    files: ['test/ingest/rejects/hostile.test.ts', 'test/ingest/mapping/hostile.test.ts'],
  },
  F43: {
    title: 'migrations under load',
    criterion:
      '0 requests fail, and their p99 grows by ≤ 1 s, from the oldest supported schema and on ' +
      'the schema of the next version; a table in use blocks no reader; a killed runner ' +
      'continues where it stopped; all data of every earlier version remain',
    files: [
      'test/migrations/live.test.ts',
      'test/migrations/running.test.ts',
      'test/migrations/versions.test.ts',
    ],
  },
  F44: {
    title: 'all data exported and imported',
    criterion: 'all contents and answers of the copy are those of the original, byte for byte',
    files: ['test/archive/same-answers.test.ts'],
    why:
      'The restore drill and point-in-time recovery were tested by hand: ' +
      '[operations](operations.md)',
  },
  F51c: {
    title: 'a client that reads none of its rejections',
    criterion: 'it takes no slot from others: a price request is answered',
    files: ['test/sockets/pipelining.test.ts'],
  },
};
