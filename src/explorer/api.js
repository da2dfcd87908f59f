// Requests to the service, and the key. No other module holds it or stores it.

/** The address of the service: this module is in `explorer/<edition>/`. */
export const ROOT = new URL('../../', import.meta.url);

const KEPT = 'explorer-key';

let key = null;

/** Counts the changes of the key, to ignore responses to an earlier key. */
let turn = 0;

/** The storages of a key by the place that remembers it. Reading one throws if it is forbidden. */
const STORAGES = { tab: () => sessionStorage, device: () => localStorage };

/**
 * Stores a key for reloads, and removes it from the other places. Does nothing if the browser
 * forbids it.
 * @param place `tab`, `device`, or null for none
 */
function storeKey(text, place) {
  for (const [name, storage] of Object.entries(STORAGES)) {
    try {
      if (name === place) storage().setItem(KEPT, text);
      else storage().removeItem(KEPT);
    } catch {}
  }
}

/** Sets the key. In the place `tab` or `device` it survives a reload. */
export function useKey(text, place) {
  key = text;
  turn += 1;
  storeKey(text, place);
}

const forgotten = [];

/** Adds a listener that is called when the key is forgotten, to forget the choices of its reader. */
export const onForget = (listener) => forgotten.push(listener);

/** Deletes the key from memory, the tab and the device. */
export function forgetKey() {
  key = null;
  turn += 1;
  storeKey(null, null);
  for (const each of forgotten) each();
}

/** True while there is a key. */
export const hasKey = () => key !== null;

/** True if a text is the key in use. */
export const isKey = (text) => text === key;

/** The part of a key that is not secret, `cps_live_` and the public id; null for other texts. */
const publicPart = (text) =>
  /^(cps_live_[0-9A-Za-z]{10})_[0-9A-Za-z]{38}$/.exec(text ?? '')?.[1] ?? null;

/** The key of a link, which waits for the consent of the reader. */
let offered = null;

/** Stores a key that may replace the key in use; returns false for a text that is no key. */
export function offerKey(text) {
  offered = publicPart(text) === null ? null : text;
  return offered !== null;
}

/** The offered key, which is not offered any longer; null if there is none. */
export function takeOffered() {
  const taken = offered;
  offered = null;
  return taken;
}

/** The public parts of the offered key and of the key in use; null if no key is offered. */
export const offerOf = () =>
  offered && { link: publicPart(offered), current: publicPart(key) ?? 'another key' };

/** The stored key with its place, that of the tab before that of the device; or null. */
export function keptKey() {
  for (const [place, storage] of Object.entries(STORAGES)) {
    try {
      const text = storage().getItem(KEPT);
      if (text !== null) return { text, place };
    } catch {}
  }
  return null;
}

/** An error response: the members of its problem document, and the seconds of Retry-After. */
export class Refusal extends Error {
  constructor(problem, retryAfter) {
    super(problem.detail ?? problem.title);
    Object.assign(this, { errors: [], ...problem, retryAfter });
  }
}

/** The service did not respond, or its response is incomplete. */
export class Unreachable extends Error {}

/** True if the same request may succeed later. */
export const isTransient = (error) =>
  error instanceof Unreachable || error.status === 429 || error.status >= 500;

/** Receives each wait before a retry: its seconds, and null at its end. */
export const waits = { onWait: () => {} };

const MOST_AT_ONCE = 6;
const MOST_WAIT_S = 120;
const line = [];
let running = 0;

/** Runs at most six tasks at the same time: a key may send ten concurrent requests. */
async function inTurn(task) {
  if (running >= MOST_AT_ONCE) await new Promise((go) => line.push(go));
  running += 1;
  try {
    return await task();
  } finally {
    running -= 1;
    line.shift()?.();
  }
}

const pause = (seconds, signal) =>
  new Promise((done, fail) => {
    signal?.throwIfAborted();
    const timer = setTimeout(done, seconds * 1_000);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      fail(signal.reason);
    });
  });

/** True if the error belongs to the current key and not to an earlier one. */
export const isOfKey = (error) => error.turn === undefined || error.turn === turn;

/** Time until a response begins. A longer silence is a connection that the other end has lost. */
const SILENCE_MAX_MS = 60_000;

async function sent(address, signal, { body, accept } = {}) {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), SILENCE_MAX_MS);
  try {
    return await fetch(new URL(address, ROOT), {
      ...(body ? { method: 'POST', body } : {}),
      headers: {
        'x-api-key': key,
        ...(body ? { 'content-type': 'application/json' } : {}),
        ...(accept ? { accept } : {}),
      },
      credentials: 'omit',
      redirect: 'error',
      referrerPolicy: 'no-referrer',
      signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable('The service cannot be reached');
  } finally {
    clearTimeout(timer);
  }
}

async function refusalOf(answer) {
  const problem = await answer.json().catch(() => ({}));
  const fallback = { status: answer.status, title: `The service answered ${answer.status}` };
  const seconds = Number(answer.headers.get('retry-after'));
  return new Refusal({ ...fallback, ...problem }, Number.isFinite(seconds) ? seconds : 0);
}

const asksToWait = ({ status }) => status === 429 || status === 503;

/**
 * Sends a GET, or a POST with a `body`, which only reads too. A 429 or 503 is retried once, after
 * its Retry-After.
 * @param others `body`, a JSON text, and `accept`, a media type
 * @throws Refusal, Unreachable
 */
export const ask = (address, signal, others) =>
  inTurn(async () => {
    let asked = turn;
    let answer = await sent(address, signal, others);
    if (asksToWait(answer)) {
      const refusal = await refusalOf(answer);
      if (refusal.retryAfter > MOST_WAIT_S) throw refusal;
      waits.onWait({ seconds: refusal.retryAfter, refusal });
      await pause(refusal.retryAfter, signal).finally(() => waits.onWait(null));
      asked = turn;
      answer = await sent(address, signal, others);
    }
    if (!answer.ok) throw Object.assign(await refusalOf(answer), { turn: asked });
    return answer;
  });

/** The body of a response as text. */
export async function askText(address, signal, others) {
  const answer = await ask(address, signal, others);
  try {
    return await answer.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable('The answer of the service broke off');
  }
}

/** The body of a response as parsed JSON, with JavaScript numbers. */
export const askJson = async (address, signal) => JSON.parse(await askText(address, signal));

// Exact numbers: `7285.10` stays `7285.10`.

const asWritten = (_name, value, context) => (typeof value === 'number' ? context.source : value);

const hasSource = JSON.parse('1', (_name, _value, context) => context?.source) === '1';

/** A text in quotes, or a number outside of any. */
const TEXT_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

/** Fallback for browsers whose `JSON.parse` does not pass the source of a number. */
export const exactByQuotes = (text) =>
  JSON.parse(text.replace(TEXT_OR_NUMBER, (each) => (each[0] === '"' ? each : `"${each}"`)));

/** Parses JSON with every number as its source text. */
export const exact = (text) => (hasSource ? JSON.parse(text, asWritten) : exactByQuotes(text));
