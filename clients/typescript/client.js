/** A failed call. Members that were not sent are null. */
export class PricesError extends Error {
    name = 'PricesError';
    status = null;
    code = null;
    errors = [];
    requestId = null;
    retryAfterMs = null;
}
/** One row for each price and date; `columns` has the names, also without rows. */
export function rowsOf({ data }) {
    const rows = data.flatMap(({ code, name, currency, unitOfMeasure, series }) => series.map(({ date, low, mid, high, corrections }) => {
        const money = { currency: currency?.iso ?? null, unit: unitOfMeasure.symbol };
        return { code, name, date, low, mid, high, ...money, corrections };
    }));
    const columns = 'code name date low mid high currency unit corrections'.split(' ');
    return Object.assign(rows, { columns });
}
/** Milliseconds of a Retry-After; null if missing or malformed. */
function retryAfterOf(text) {
    if (/^\d{1,9}$/.test(text ?? ''))
        return Number(text) * 1_000;
    const ms = Date.parse(text?.endsWith(' GMT') ? text : '') - Date.now();
    return Number.isNaN(ms) ? null : Math.max(0, ms);
}
const pause = (ms, signal) => new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => resolve(clearTimeout(timer)));
});
const numberOf = (text = '') => Number(/^[0-9a-z]+\.(\d+)$/.exec(text)?.[1] ?? -1);
const ADDRESS = /^(?!.*cps_[a-z]+_)https?:\/\/[^/@?#\s]+(\/[^@?#\s]*)?$/i;
const fault = (text, members = {}) => Object.assign(new PricesError(text), members);
/** @throws PricesError, without a status if the connection failed */
async function attempt(url, init, signal) {
    // A redirect would take the key elsewhere.
    const answer = await fetch(url, { ...init, redirect: 'manual', signal }).catch((error) => {
        throw fault(`${url} cannot be reached: ${error.cause?.code ?? error.message}`);
    });
    const kind = answer.headers.get('content-type')?.split(';')[0]?.trim() ?? 'no content';
    const isJson = /^application\/(problem\+)?json$/.test(kind);
    const [reader, decoder] = [answer.body?.getReader(), new TextDecoder()];
    let [text, content] = ['', null];
    try {
        for (let part = await reader?.read(); part?.value; part = await reader?.read()) {
            text += decoder.decode(part.value, { stream: true });
            if (!isJson && text.length > 200)
                await reader?.cancel();
        }
        if (isJson && (text || answer.ok))
            content = JSON.parse(text);
    }
    catch {
        throw fault(`${url} sent a part of its answer only: ${text.slice(0, 200)}`);
    }
    const { $metadata: meta, data } = content ?? {};
    const isPage = meta && Array.isArray(data) && (meta.count ?? data.length) === data.length;
    if (answer.status === 204 || (answer.status === 200 && isPage))
        return { content, answer };
    const other = { detail: `${kind}, no answer of version 3: ${text.slice(0, 200)}` };
    const { detail, code = null, errors = [], requestId = null } = content?.code ? content : other;
    const places = errors.map((each) => `\n${each.pointer}: ${each.detail}`).join('');
    const hint = answer.status === 404 ? ' (this client is for version 3 of the service)' : '';
    const retryAfterMs = retryAfterOf(answer.headers.get('retry-after'));
    const members = { status: answer.status, code, errors, requestId, retryAfterMs };
    throw fault(`${url} answered ${answer.status}: ${detail}${places}${hint}`, members);
}
/** Sends a request with retries: every call only reads. */
async function send(url, init, { signal, timeoutMs = 60_000 }) {
    const control = new AbortController();
    const stop = () => control.abort();
    const timer = setTimeout(stop, Math.min(timeoutMs, 2 ** 31 - 1));
    const endsAt = performance.now() + timeoutMs;
    signal?.addEventListener('abort', stop);
    try {
        for (let retries = 0;; retries += 1) {
            signal?.throwIfAborted();
            const got = await attempt(url, init, control.signal).catch((error) => error);
            if (!(got instanceof Error))
                return got;
            signal?.throwIfAborted();
            if (control.signal.aborted)
                throw fault(`${url} did not answer within ${timeoutMs} ms`);
            const waitMs = got.retryAfterMs ?? 500 * 2 ** retries;
            const isPassing = [null, 304, 429, 503].includes(got.status);
            if (!isPassing || retries === 3 || performance.now() + waitMs >= endsAt)
                throw got;
            await pause(waitMs, control.signal);
        }
    }
    finally {
        clearTimeout(timer);
        signal?.removeEventListener('abort', stop);
    }
}
/** @throws PricesError for a missing key, and for a malformed key or address */
export function createClient(options = {}) {
    const { process } = globalThis;
    const url = options.url ?? process?.env?.['COMMODITY_PRICES_URL'] ?? 'http://127.0.0.1:3000';
    const key = options.key ?? process?.env?.['COMMODITY_PRICES_KEY'] ?? '';
    if (!ADDRESS.test(url))
        throw fault('url must be https://host, without a key or a query');
    if (!key)
        throw fault('There is no API key; set COMMODITY_PRICES_KEY, or give key');
    if (!/^[\x21-\x7e]+$/.test(key))
        throw fault('The API key has illegal characters');
    const base = url.replace(/\/+$/, '').replace(/\/v3(\/prices)?$/, '');
    const headers = { 'content-type': 'application/json', 'x-api-key': key };
    const { onWarning = (each, market) => console.warn(market, each.code, each.detail) } = options;
    async function ask(path, call = {}, init = {}) {
        const { signal = options.signal, timeoutMs = options.timeoutMs } = call;
        const got = await send(`${base}/v3/${path}`, { ...init, headers }, { signal, timeoutMs });
        const [fields, min] = [got.answer.headers, 'x-min-revision'];
        const revision = fields.get('x-data-revision') ?? '';
        // Other histories have other numbers.
        const known = fields.has(`${min}-unknown`) ? -1 : numberOf(headers[min]);
        if (options.monotonic !== false && numberOf(revision) > known)
            headers[min] = revision;
        return { ...got, revision };
    }
    async function prices(market, request = {}, call) {
        const text = options.decimals === 'text' && { decimalsAsText: true };
        const body = { ...request, options: { includeSeries: true, ...request.options, ...text } };
        const init = { method: 'POST', body: JSON.stringify(body) };
        const { content } = await ask(`prices/${encodeURIComponent(market)}`, call, init);
        const { $metadata: metadata, data } = content;
        // Each page has the warnings of the whole request.
        for (const each of body.options.cursor ? [] : metadata.warnings)
            onWarning(each, market);
        return { data, metadata, revision: metadata.revision };
    }
    async function* pages(market, request = {}, call) {
        for (let cursor = request.options?.cursor; cursor !== null;) {
            const own = { limit: 100, ...request.options, cursor };
            const page = await prices(market, { ...request, options: own }, call);
            yield page;
            cursor = page.metadata.nextCursor ?? null;
        }
    }
    async function changes(request = {}, call) {
        const query = Object.entries(request).flatMap(([name, value = []]) => [value].flat().map((each) => [name, String(each)]));
        const { content, answer, revision } = await ask(`changes?${new URLSearchParams(query)}`, call);
        return { data: content?.data ?? [], nextSeq: answer.headers.get('x-next-seq'), revision };
    }
    return { prices, pages, changes };
}
