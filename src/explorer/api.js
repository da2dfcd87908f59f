// Requests to the service. The key is in this module's memory and in a header, nowhere else.

/** The address of the service: this module is in `explorer/<edition>/`. */
export const ROOT = new URL('../../', import.meta.url);

const KEPT = 'explorer-key';

let key = null;

/** Counts the keys that were taken and forgotten: an answer to an older one comes too late. */
let turn = 0;

/** Keeps a key for reloads of this tab, or none. A browser may forbid it: then nothing is kept. */
function keep(text) {
  try {
    if (text === null) sessionStorage.removeItem(KEPT);
    else sessionStorage.setItem(KEPT, text);
  } catch {}
}

/** Takes a key; with `isKept` a reload of this tab has it again. */
export function useKey(text, isKept) {
  key = text;
  turn += 1;
  keep(isKept ? text : null);
}

/** Forgets the key, also that of the tab. */
export function forgetKey() {
  key = null;
  turn += 1;
  keep(null);
}

/** The key that the tab has kept, or null. */
export function keptKey() {
  try {
    return sessionStorage.getItem(KEPT);
  } catch {
    return null;
  }
}

/** A refusal of the service: the members of its problem document, and the seconds to wait. */
export class Refusal extends Error {
  constructor(problem, retryAfter) {
    super(problem.detail ?? problem.title);
    Object.assign(this, { errors: [], ...problem, retryAfter });
  }
}

/** The service gave no answer at all. */
export class Unreachable extends Error {}

/** Hears of each wait that the service asks for: its seconds, and null when it is over. */
export const waits = { hear: () => {} };

const MOST_AT_ONCE = 6;
const MOST_WAIT_S = 120;
const line = [];
let running = 0;

/** Runs a task once fewer than six are under way: a key may ask ten times at once. */
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
    const timer = setTimeout(done, seconds * 1_000);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      fail(signal.reason);
    });
  });

/** True for a failure of the key that is in use, and not of one before it. */
export const isOfKey = (error) => error.turn === undefined || error.turn === turn;

async function sent(address, signal) {
  try {
    return await fetch(new URL(address, ROOT), {
      headers: { 'x-api-key': key },
      credentials: 'omit',
      redirect: 'error',
      referrerPolicy: 'no-referrer',
      signal,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable('The service cannot be reached');
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
 * The answer to a GET. A refusal with 429 or 503 is repeated once, after the time that it names.
 * @throws Refusal, Unreachable
 */
export const ask = (address, signal) =>
  inTurn(async () => {
    let asked = turn;
    let answer = await sent(address, signal);
    if (asksToWait(answer)) {
      const refusal = await refusalOf(answer);
      if (refusal.retryAfter > MOST_WAIT_S) throw refusal;
      waits.hear({ seconds: refusal.retryAfter, refusal });
      await pause(refusal.retryAfter, signal).finally(() => waits.hear(null));
      asked = turn;
      answer = await sent(address, signal);
    }
    if (!answer.ok) throw Object.assign(await refusalOf(answer), { turn: asked });
    return answer;
  });

/** The text of an answer. */
export async function askText(address, signal) {
  const answer = await ask(address, signal);
  try {
    return await answer.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable('The answer of the service broke off');
  }
}

/** The JSON of an answer, with numbers of JavaScript. */
export const askJson = async (address, signal) => JSON.parse(await askText(address, signal));

// Numbers of an answer as the service wrote them: `7285.10` stays `7285.10`.

const asWritten = (_name, value, context) => (typeof value === 'number' ? context.source : value);

const hasSource = JSON.parse('1', (_name, _value, context) => context?.source) === '1';

/** A text in quotes, or a number outside of any. */
const TEXT_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

/** The same for browsers whose `JSON.parse` does not give the source of a number. */
export const exactByQuotes = (text) =>
  JSON.parse(text.replace(TEXT_OR_NUMBER, (each) => (each[0] === '"' ? each : `"${each}"`)));

/** A JSON text with every number as the text that stands there. */
export const exact = (text) => (hasSource ? JSON.parse(text, asWritten) : exactByQuotes(text));
