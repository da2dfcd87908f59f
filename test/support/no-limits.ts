/** Tests ask more often than a client may; those of the limits set their own. */
export const NO_LIMITS = {
  RATE_PER_MINUTE: '0',
  CONCURRENT_MAX: '0',
  FAILED_AUTH_PER_MINUTE: '0',
  RUNNING_MAX: '0',
};
