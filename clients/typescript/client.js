const MEDIA = {
    csv: 'text/csv',
    ndjson: 'application/x-ndjson',
    rows: 'application/json;profile=rows',
    parquet: 'application/vnd.apache.parquet',
    arrow: 'application/vnd.apache.arrow.stream',
    xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
};
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
const holdsKey = (url) => /cps_[a-z]+_|eyJ[\w-]+\.eyJ/i.test(String(new URLSearchParams(url)));
const isText = (value) => typeof value === 'string';
const isList = (list) => Array.isArray(list) && list.every((each) => isText(each?.code));
const numberOf = (text = '') => Number(/^[0-9a-z]+\.(\d+)$/.exec(text)?.[1] ?? -1);
const ADDRESS = /^https?:\/\/[^/@?#\s]+(\/[^@?#\s]*)?$/i;
const secretOf = (secret) => {
    const forms = [...secret].map((each) => {
        const code = each.charCodeAt(0).toString(16);
        return `(\\\\{0,4}\\x${code}|%(25){0,4}${code}|\\\\{1,4}u00${code})`;
    });
    const [head, cut, rest] = [forms.slice(0, 12), forms.slice(12, 64), new Set(forms.slice(64))];
    const tail = rest.size > 0 ? `(${[...rest].join('|')})*` : '';
    return new RegExp(`${head.join('')}${cut.map((each) => `${each}?`).join('')}${tail}`, 'gi');
};
const fault = (text, members = {}) => Object.assign(new PricesError(text), members);
const UNSAFE = /[^\x21-\x7e]/;
async function attempt(ask, secret, { fetch, header }, signal) {
    const { url, method, body: sent, isWhole } = ask;
    const pattern = secretOf(secret);
    const hide = (text) => text.replace(pattern, '[secret]');
    const credential = header === 'authorization' ? `Bearer ${secret}` : secret;
    const headers = { ...ask.headers, [header]: credential };
    const init = { method, body: sent, headers, redirect: 'manual', signal };
    const { ok, status, headers: fields, body, } = await fetch(url, init).catch((error) => {
        const why = error.cause?.code ?? (error.cause ?? error).message;
        throw fault(`${url} cannot be reached: ${hide(why)}`);
    });
    const kind = fields.get('content-type')?.split(';')[0]?.trim() ?? 'no content';
    if (ok && !isWhole && kind === ask.headers['accept']?.split(';')[0])
        return { content: null, fields, body, hide };
    const isJson = /^application\/(problem\+)?json$/i.test(kind);
    const [reader, decoder] = [body?.getReader(), new TextDecoder()];
    const none = { $metadata: { nextSeq: fields.get('x-next-seq') }, data: [] };
    let [text, content, part] = ['', null, null];
    try {
        for (part = await reader?.read(); part?.value; part = await reader?.read()) {
            text += decoder.decode(part.value, { stream: true });
            if (!isJson && text.length > 200)
                await reader?.cancel();
        }
        content = status === 204 ? none : isJson && JSON.parse(ok ? text : hide(text));
        if (ok && isWhole?.(content))
            return { content, fields, body: null, hide };
    }
    catch {
        if (!part?.done || (ok && !text))
            throw fault(`${url} sent a part of its answer only: ${hide(text).slice(0, 200)}`);
    }
    const [to, retryAfterMs] = [fields.get('location'), retryAfterOf(fields.get('retry-after'))];
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
function bytesOf(body, end, failure) {
    const reader = body.getReader();
    return new ReadableStream({
        async pull(control) {
            const part = await reader.read().catch(() => {
                end();
                throw failure();
            });
            if (part.value)
                return control.enqueue(part.value);
            end();
            control.close();
        },
        cancel(reason) {
            end();
            return reader.cancel(reason);
        },
    });
}
const TRANSIENT = [null, 304, 429, 502, 503, 504];
async function send(ask, transport, { signal, timeoutMs = 60_000 }) {
    const { url } = ask;
    const [control, endsAt] = [new AbortController(), performance.now() + timeoutMs];
    const stop = () => control.abort();
    const timer = setTimeout(stop, Math.min(timeoutMs, 2e9));
    const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', stop);
    };
    const check = () => {
        signal?.throwIfAborted();
        if (control.signal.aborted)
            throw fault(`${url} did not answer within ${timeoutMs} ms`);
    };
    const secretNow = async () => {
        const aborted = new Promise((_resolve, reject) => {
            control.signal.addEventListener('abort', reject);
        });
        const secret = await Promise.race([transport.secret(), aborted]).catch((cause) => {
            check();
            throw fault('No token: the function of the client failed', { cause });
        });
        if (!secret || UNSAFE.test(secret))
            throw fault('The token is empty, or has illegal characters');
        return secret;
    };
    signal?.addEventListener('abort', stop);
    try {
        for (let retries = 0;; retries += 1) {
            signal?.throwIfAborted();
            const secret = await secretNow();
            const sent = attempt(ask, secret, transport, control.signal);
            const got = await sent.catch((error) => error);
            if (!(got instanceof Error)) {
                const { content, fields, body, hide } = got;
                if (!body)
                    end();
                const broken = () => {
                    signal?.throwIfAborted();
                    check();
                    return fault(`${url} sent a part of its answer only`);
                };
                return { content, fields, hide, body: body && bytesOf(body, end, broken) };
            }
            check();
            const baseMs = got.retryAfterMs ?? 500 * 2 ** retries;
            const waitMs = baseMs + Math.random() * Math.min(baseMs, 500);
            const isLast = !TRANSIENT.includes(got.status) || retries === 3;
            if (isLast || performance.now() + waitMs >= endsAt)
                throw got;
            await new Promise((resolve) => {
                const timer = setTimeout(resolve, waitMs);
                control.signal.onabort = () => resolve(clearTimeout(timer));
            });
        }
    }
    catch (error) {
        end();
        throw error;
    }
}
function warningsOf(text) {
    try {
        const list = JSON.parse(text);
        return isList(list) ? list : [];
    }
    catch {
        return [];
    }
}
const isPage = ({ $metadata: meta, data }, mark) => isText(mark) && isList(data) && (meta.count ?? data.length) === data.length;
const arePrices = (content) => isList(content.$metadata.warnings) &&
    areFound(content) &&
    !rowsOf(content).some((row) => Object.values(row).includes(undefined));
const areChanges = (content) => isPage(content, content.$metadata.nextSeq);
const areFound = (content) => isPage(content, content.$metadata.revision);
const areMarkets = ({ data }) => data.every((each) => isText(each.slug));
const areValues = ({ $metadata: { revision }, data }) => isText(revision) && !!data.valueOf();
const isMe = ({ kind, scopes }) => isText(kind) && Array.isArray(scopes);
function transportOf({ key, token, fetch }, env) {
    const none = key === undefined && token === undefined;
    const [own, bearer] = none
        ? [env['COMMODITY_PRICES_KEY'], env['COMMODITY_PRICES_TOKEN']]
        : [key, token];
    if (own && bearer)
        throw fault('Give a key or a token, not both');
    const secret = own || bearer;
    if (!secret)
        throw fault('No API key; set COMMODITY_PRICES_KEY, or give key or token');
    if (isText(secret) && UNSAFE.test(secret))
        throw fault('key has illegal characters');
    return {
        fetch: (...request) => (fetch ?? globalThis.fetch)(...request),
        header: own ? 'x-api-key' : 'authorization',
        secret: typeof secret === 'function' ? secret : () => secret,
    };
}
function asker(options) {
    const { process } = globalThis;
    const env = process?.env ?? {};
    const url = options.url ?? env['COMMODITY_PRICES_URL'] ?? 'http://127.0.0.1:3000';
    if (!ADDRESS.test(url) || holdsKey(url))
        throw fault('url must be http(s)://host without a key');
    const transport = transportOf(options, env);
    const base = url.replace(/\/+$/, '').replace(/\/v3(\/prices)?$/, '');
    const bound = {};
    return async (path, isWhole, call = {}, body = null, accept = 'application/json, application/problem+json') => {
        const { signal = options.signal, timeoutMs = options.timeoutMs } = call;
        if (holdsKey(path))
            throw fault('An address must not hold a key');
        const headers = { ...bound, accept, ...(body && { 'content-type': 'application/json' }) };
        const method = body ? 'POST' : 'GET';
        const request = { url: `${base}/v3/${path}`, method, body, headers, isWhole };
        const got = await send(request, transport, { signal, timeoutMs });
        const { content, fields } = got;
        const [min, revision] = ['x-min-revision', fields.get('x-data-revision') ?? ''];
        const known = fields.has(`${min}-unknown`) ? -1 : numberOf(bound[min]);
        if (options.monotonic !== false && numberOf(revision) > known)
            bound[min] = revision;
        return { ...got, data: content?.data, metadata: content?.$metadata, revision };
    };
}
const pathOf = (market) => `prices/${encodeURIComponent(market)}`;
function priceCalls(ask, options) {
    const { onWarning = (each, market) => console.warn(market, each.code, each.detail) } = options;
    const bodyOf = (request, more = {}) => ({ ...request, options: { includeSeries: true, ...request.options, ...more } });
    const warn = (market, body, warnings) => {
        for (const each of body.options.cursor ? [] : warnings)
            onWarning(each, market);
    };
    async function prices(market, request = {}, call) {
        const body = bodyOf(request, options.decimals === 'text' ? { decimalsAsText: true } : {});
        const got = await ask(pathOf(market), arePrices, call, JSON.stringify(body));
        const { data, metadata, hide } = got;
        metadata.warnings = JSON.parse(hide(JSON.stringify(metadata.warnings)));
        warn(market, body, metadata.warnings);
        return { data, metadata, revision: metadata.revision };
    }
    async function* pages(market, request = {}, call) {
        for (let own = { limit: 100, ...request.options }; own.cursor !== null;) {
            const page = await prices(market, { ...request, options: own }, call);
            yield page;
            own = { ...own, cursor: page.metadata.nextCursor ?? null };
        }
    }
    async function file(market, format, request = {}, call) {
        if (!Object.hasOwn(MEDIA, format))
            throw fault(`No format ${format}: ${Object.keys(MEDIA)}`);
        const sent = bodyOf(request);
        const got = await ask(pathOf(market), null, call, JSON.stringify(sent), MEDIA[format]);
        const { fields, body, revision, hide } = got;
        warn(market, sent, warningsOf(hide(fields.get('x-warnings') ?? '')));
        const bytes = async () => new Uint8Array(await new Response(body).arrayBuffer());
        return { body, revision, nextCursor: fields.get('x-next-cursor'), bytes };
    }
    return { prices, pages, file };
}
const withQuery = (path, request) => {
    const query = Object.entries(request).flatMap(([name, value = []]) => [value].flat().map((each) => [name, String(each)]));
    return `${path}?${new URLSearchParams(query)}`;
};
function listCalls(ask) {
    const list = async (path, isWhole, call) => {
        const { data, metadata } = await ask(path, isWhole, call);
        return { data, metadata, revision: metadata.revision };
    };
    return {
        async changes(request = {}, call) {
            const got = await ask(withQuery('changes', request), areChanges, call);
            const { nextSeq, hasMore = false, warnings = [] } = got.metadata;
            return { data: got.data, nextSeq, hasMore, revision: got.revision, warnings };
        },
        search: (q, request = {}, call) => list(withQuery('search', { ...request, q }), areFound, call),
        markets: async (call) => (await ask('prices', areMarkets, call)).data,
        filters: (market, call) => list(`${pathOf(market)}/filters`, areValues, call),
        currencies: (call) => list('reference/currencies', areValues, call),
        units: (call) => list('reference/units', areValues, call),
        rates: (request, call) => list(withQuery('reference/rates', request), areValues, call),
        calendar: (request = {}, call) => list(withQuery('calendar', request), areFound, call),
        me: async (call) => (await ask('me', isMe, call)).content,
    };
}
export function createClient(options = {}) {
    const ask = asker(options);
    return { ...priceCalls(ask, options), ...listCalls(ask) };
}
