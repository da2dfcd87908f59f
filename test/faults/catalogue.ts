import type { Elsewhere } from '../support/fault-table.ts';

/** Faults of the catalogue that other tests do for real, and those that nobody does. */
export const FAULTS: Readonly<Record<string, Elsewhere>> = {
  F13: {
    title: 'disk full',
    files: ['test/ingest/disk-full.test.ts'],
    why: 'A small file system is filled to several degrees and loaded into',
  },
  F18: { title: 'malformed HTTP', files: ['test/sockets/malformed.test.ts'] },
  F20: {
    title: 'a fuzzer of somebody else',
    byHand: '0 × 5xx and 0 undocumented statuses in 2,073 requests',
    why: 'See [below](#a-fuzzer-of-somebody-else); the one of this project is F19',
  },
  F22: {
    title: 'prototype pollution',
    files: ['test/http/400-many.test.ts', 'test/fuzz.test.ts'],
  },
  F26: {
    title: 'filters against an oracle',
    files: ['test/prices/filters.property.test.ts', 'test/prices/metamorphic.test.ts'],
  },
  F27: { title: 'records of another market', files: ['test/prices/metamorphic.test.ts'] },
  F28: {
    title: 'forged tokens',
    files: ['test/auth/forgeries.test.ts', 'test/auth/key-confusion.test.ts'],
  },
  F29: { title: 'clocks that differ', files: ['test/auth/claims.test.ts'] },
  F33: {
    title: 'secrets in logs and answers',
    files: ['test/sockets/secrets.test.ts', 'test/auth/log.test.ts'],
  },
  F34: { title: 'the matrix of scopes', files: ['test/http/scopes.test.ts'] },
  F39: {
    title: 'a loader killed at any moment',
    files: ['test/ingest/killed.test.ts', 'test/archive/killed.test.ts'],
  },
  F40: { title: 'the same loads at once', files: ['test/ingest/parallel.test.ts'] },
  F41: {
    title: 'readers during loads',
    files: ['test/prices/one-snapshot.test.ts', 'test/changes-exactly-once.test.ts'],
  },
  F42: {
    title: 'hostile files',
    files: ['test/ingest/hostile.test.ts', 'test/ingest/table-hostile.test.ts'],
  },
  F43: {
    title: 'migrations under load',
    files: ['test/migrations/live.test.ts', 'test/migrations/running.test.ts'],
  },
  F44: {
    title: 'all data taken out and back',
    files: ['test/drill.test.ts', 'test/archive/same-answers.test.ts'],
    why: 'Back to a moment was done by hand: [operations](operations.md)',
  },
};
