export class PricesError extends Error {
    name = 'PricesError';
    status = null;
    code = null;
    errors = [];
    requestId = null;
    retryAfterMs = null;
}
export function rowsOf({ data }) {
    const rows = data.flatMap(({ code, name, currency, unitOfMeasure, series }) => series.map(({ date, low, mid, high, corrections }) => {
        const money = { currency: currency?.iso ?? null, unit: unitOfMeasure.symbol };
        return { code, name, date, low, mid, high, ...money, corrections };
    }));
    const columns = 'code name date low mid high currency unit corrections'.split(' ');
    return Object.assign(rows, { columns });
}
function retryAfterOf(text) {
    if (/^\d{1,9}$/.test(text ?? ''))
        return Number(text) * 1_000;
    const ms = Date.parse(text?.endsWith(' GMT') ? text : '') - Date.now();
    return Number.isNaN(ms) ? null : Math.max(0, ms);
}
const holdsKey = (url) => /cps_[a-z]+_/i.test(String(new URLSearchParams(url)));
const isText = (value) => typeof value === 'string';
const isList = (list) => Array.isArray(list) && list.every((each) => isText(each?.code));
const numberOf = (text = '') => Number(/^[0-9a-z]+\.(\d+)$/.exec(text)?.[1] ?? -1);
const ADDRESS = /^https?:\/\/[^/@?#\s]+(\/[^@?#\s]*)?$/i;
const secretOf = (key) => {
    const forms = [...key].map((each, place) => {
        const code = each.charCodeAt(0).toString(16);
        return `(\\\\{0,4}\\x${code}|%(25){0,4}${code}|\\\\{1,4}u00${code})${place < 12 ? '' : '?'}`;
    });
    return new RegExp(forms.join(''), 'gi');
};
const fault = (text, members = {}) => Object.assign(new PricesError(text), members);
async function attempt(url, init, signal) {
    const secret = secretOf(new Headers(init.headers).get('x-api-key') ?? '');
    const hide = (text) => text.replace(secret, '[secret]');
    const { ok, status, headers, body } = await fetch(url, { ...init, signal }).catch((error) => {
        const why = error.cause?.code ?? (error.cause ?? error).message;
        throw fault(`${url} cannot be reached: ${hide(why)}`);
    });
    const kind = headers.get('content-type')?.split(';')[0]?.trim() ?? 'no content';
    const isJson = /^application\/(problem\+)?json$/i.test(kind);
    const [reader, decoder] = [body?.getReader(), new TextDecoder()];
    const none = { $metadata: { nextSeq: headers.get('x-next-seq') }, data: [] };
    let [text, content, part] = ['', null, null];
    try {
        for (part = await reader?.read(); part?.value; part = await reader?.read()) {
            text += decoder.decode(part.value, { stream: true });
            if (!isJson && text.length > 200)
                await reader?.cancel();
        }
        content = status === 204 ? none : isJson && JSON.parse(ok ? text : hide(text));
        const { $metadata: meta, data } = content;
        const mark = init.body ? isList(meta.warnings) && meta.revision : meta.nextSeq;
        const isPage = isText(mark) && isList(data) && (meta.count ?? data.length) === data.length;
        const rows = init.body ? rowsOf(content) : [];
        if (ok && isPage && !rows.some((row) => Object.values(row).includes(undefined))) {
            if (init.body)
                meta.warnings = JSON.parse(hide(JSON.stringify(meta.warnings)));
            return { content, fields: headers };
        }
    }
    catch {
        if (!part?.done || (ok && !text))
            throw fault(`${url} sent a part of its answer only: ${hide(text).slice(0, 200)}`);
    }
    const [to, retryAfterMs] = [headers.get('location'), retryAfterOf(headers.get('retry-after'))];
    const moved = status < 400 && to && `a redirect to ${to.split(/[?#]/)[0]}; set url to its host`;
    const other = { detail: moved || `${kind}, no answer of version 3: ${hide(text).slice(0, 200)}` };
    const isProblem = isText(content?.code) && isText(content.detail);
    const { detail, code = null, errors: list, requestId = null } = isProblem ? content : other;
    const errors = isList(list) ? list : [];
    const places = errors.map((each) => `\n${each.pointer}: ${each.detail}`).join('');
    const hint = status === 404 ? ' (this client is for version 3)' : '';
    const members = { status, code, errors, requestId, retryAfterMs };
    throw fault(`${url} answered ${status}: ${hide(detail)}${places}${hint}`, members);
}
async function send(url, init, { signal, timeoutMs = 60_000 }) {
    const [control, endsAt] = [new AbortController(), performance.now() + timeoutMs];
    const stop = () => control.abort();
    const timer = setTimeout(stop, Math.min(timeoutMs, 2e9));
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
            await new Promise((resolve) => {
                const timer = setTimeout(resolve, waitMs);
                control.signal.onabort = () => resolve(clearTimeout(timer));
            });
        }
    }
    finally {
        clearTimeout(timer);
        signal?.removeEventListener('abort', stop);
    }
}
export function createClient(options = {}) {
    const { process } = globalThis;
    const url = options.url ?? process?.env?.['COMMODITY_PRICES_URL'] ?? 'http://127.0.0.1:3000';
    const key = options.key ?? process?.env?.['COMMODITY_PRICES_KEY'] ?? '';
    if (!ADDRESS.test(url) || holdsKey(url))
        throw fault('url must be http(s)://host without a key');
    if (!key)
        throw fault('No API key; set COMMODITY_PRICES_KEY, or give key');
    if (!/^[\x21-\x7e]+$/.test(key))
        throw fault('key has illegal characters');
    const base = url.replace(/\/+$/, '').replace(/\/v3(\/prices)?$/, '');
    const headers = { 'content-type': 'application/json', 'x-api-key': key };
    const { onWarning = (each, market) => console.warn(market, each.code, each.detail) } = options;
    async function ask(path, call = {}, body = null) {
        const { signal = options.signal, timeoutMs = options.timeoutMs } = call;
        if (holdsKey(path))
            throw fault('An address must not hold a key');
        const init = { method: body ? 'POST' : 'GET', body, headers, redirect: 'manual' };
        const { content, fields } = await send(`${base}/v3/${path}`, init, { signal, timeoutMs });
        const [min, revision] = ['x-min-revision', fields.get('x-data-revision') ?? ''];
        const known = fields.has(`${min}-unknown`) ? -1 : numberOf(headers[min]);
        if (options.monotonic !== false && numberOf(revision) > known)
            headers[min] = revision;
        return { data: content.data, metadata: content.$metadata, revision };
    }
    async function prices(market, request = {}, call) {
        const text = options.decimals === 'text' && { decimalsAsText: true };
        const body = { ...request, options: { includeSeries: true, ...request.options, ...text } };
        const page = await ask(`prices/${encodeURIComponent(market)}`, call, JSON.stringify(body));
        for (const each of body.options.cursor ? [] : page.metadata.warnings)
            onWarning(each, market);
        return { ...page, revision: page.metadata.revision };
    }
    async function* pages(market, request = {}, call) {
        for (let own = { limit: 100, ...request.options }; own.cursor !== null;) {
            const page = await prices(market, { ...request, options: own }, call);
            yield page;
            own = { ...own, cursor: page.metadata.nextCursor ?? null };
        }
    }
    async function changes(request = {}, call) {
        const query = Object.entries(request).flatMap(([name, value = []]) => [value].flat().map((each) => [name, String(each)]));
        const { metadata, ...page } = await ask(`changes?${new URLSearchParams(query)}`, call);
        return { ...page, nextSeq: metadata.nextSeq };
    }
    return { prices, pages, changes };
}
