/** Tests ask more often than a client may; those of the limits set their own. */
export const NO_LIMITS = {
  RATE_PER_MINUTE: '0',
  CONCURRENT_MAX: '0',
  FAILED_AUTH_PER_MINUTE: '0',
  RUNNING_MAX: '0',
  // The clients of a test are one network, which has a quarter of the connections.
  CONNECTIONS_MAX: '40000',
  // A machine that runs tests is busy, and its database may be slow to answer.
  DATABASE_SILENCE_MS: '20000',
  DATABASE_ACQUIRE_TIMEOUT_MS: '20000',
  DATABASE_STATEMENT_TIMEOUT_MS: '60000',
  REQUEST_DEADLINE_MS: '60000',
  WAITING_MS_MAX: '20000',
  WAITING_MAX: '10000',
};
