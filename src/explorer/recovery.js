// Retries of the parts of the page whose request failed because the service was away or overloaded.

/** Longest wait before a retry, unless the service asks for a longer one. */
const WAIT_MAX_S = 60;

/** Longest wait that the service may ask for. */
const RETRY_AFTER_MAX_S = 3_600;

/** Retries without success, about 45 minutes. Afterwards only an event or the reader retries. */
const RETRIES_MAX = 60;

/**
 * One request probes the service: the first failed part loads again, and the others only if it
 * succeeds. Waits double and have jitter, so that the pages of many readers do not return at once.
 * A part has `reload()`, which resolves after it called `add` or `remove`.
 */
export class Recovery {
  failed = new Set();
  timer = null;
  retries = 0;
  at = 0;
  notBefore = 0;
  isRetrying = false;

  /** @param onRecovered called when the last failed part has succeeded or is gone */
  constructor(onRecovered) {
    this.onRecovered = onRecovered;
    addEventListener('online', this.now);
    document.addEventListener('visibilitychange', this.now);
  }

  /**
   * Adds a part whose request failed.
   * @param retryAfter seconds that the service asks to wait
   */
  add(part, retryAfter = 0) {
    // Moves the part to the end: if it fails forever, another part probes the service.
    this.failed.delete(part);
    this.failed.add(part);
    const wait = Math.min(retryAfter, RETRY_AFTER_MAX_S) * 1_000;
    this.notBefore = Math.max(this.notBefore, Date.now() + wait);
    if (!this.isRetrying) this.schedule();
  }

  /** Removes a part that succeeded, failed for good or is gone. */
  remove(part) {
    if (!this.failed.delete(part) || this.failed.size > 0) return;
    clearTimeout(this.timer);
    Object.assign(this, { timer: null, retries: 0, notBefore: 0 });
    this.onRecovered();
  }

  schedule() {
    if (this.timer === null) {
      if (this.retries >= RETRIES_MAX) return;
      const wait = Math.min(WAIT_MAX_S, 2 ** this.retries) * (0.5 + Math.random() / 2);
      this.at = Date.now() + wait * 1_000;
      this.retries += 1;
    }
    clearTimeout(this.timer);
    const at = Math.max(this.at, this.notBefore);
    this.timer = setTimeout(this.retry, at - Date.now());
  }

  /** Retries at once, and begins anew with short waits. */
  now = () => {
    this.retries = 0;
    return this.retry();
  };

  retry = async () => {
    clearTimeout(this.timer);
    this.timer = null;
    // A page in the background waits until it is visible.
    if (document.hidden || this.isRetrying || this.failed.size === 0) return;
    this.isRetrying = true;
    try {
      const [first, ...others] = this.failed;
      await first.reload();
      if (!this.failed.has(first)) await Promise.all(others.map((each) => each.reload()));
    } finally {
      this.isRetrying = false;
    }
    if (this.failed.size > 0) this.schedule();
  };
}
