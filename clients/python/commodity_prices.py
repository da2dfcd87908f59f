"""Client of the Commodity Prices Service, version 3. Python 3.9 or newer, no other package.

    import commodity_prices as cp
    prices = cp.prices("nickel", regions=["Europe"], dateFrom="2026-01-01", currency="EUR")
    prices.revision      # the revision of the data; revision=... repeats the answer
    prices[0]["series"]  # records as the service sends them
    prices.rows()        # one dict for each price and date
    prices.df()          # the same as a pandas DataFrame

The address and the API key come from COMMODITY_PRICES_URL and COMMODITY_PRICES_KEY, or from
Client(url, key). Filters and options have the names of the interface; date_from is dateFrom.
"""

from __future__ import annotations

import base64
import contextlib
import email.utils
import http.client
import json
import os
import re
import socket
import sys
import threading
import time
import traceback
import urllib.parse
import urllib.request
import warnings
import zlib
from decimal import Decimal
from typing import Any, Iterator, Mapping, Optional, Union

__all__ = ["Changes", "Client", "PricesError", "PricesWarning", "Results", "changes", "markets",
           "pages", "prices", "search"]

RETRIES = 3
TRANSIENT = (304, 429, 503)  # 304: no request is conditional, so a cache on the way is at fault.
COLUMNS = ["code", "name", "date", "low", "mid", "high", "currency", "unit", "corrections"]
FOUND = """market code name shortName matched lastAssessedAt latestPublishedAt product priceCategory
    frequency unitOfMeasure currency priceType""".split()
NUMBERS = ("low", "mid", "high")
OPTIONS = frozenset("""includeSeries includeSummary currency unitOfMeasure onUnconvertible decimals
    aggregate asOf revision limit cursor strict lastObservations decimalsAsText columns layout
    warnings movingAverage""".split())
_newest: dict[str, tuple[int, str]] = {}  # The newest revision of each address: number and text.
_lock = threading.Lock()
_EXACT: Any = {"parse_float": Decimal, "parse_int": Decimal}
_KEY = re.compile("cps_[a-z]+_", re.IGNORECASE)


class PricesError(Exception):
    """A failed call. status: HTTP status. code: stable code of the refusal. errors: a dict with
    pointer, code and detail for each violation. request_id: for questions to the operator. None
    for a member that the service did not send."""

    def __init__(self, message: str, status: Optional[int] = None, code: Optional[str] = None,
                 errors: Any = None, request_id: Optional[str] = None) -> None:
        self.status, self.code, self.request_id = status, code, request_id
        self.errors: list[dict[str, str]] = errors if _are(errors, "detail") else []
        places = [f"{each.get('pointer')}: {each['detail']}" for each in self.errors]
        super().__init__("\n".join([message, *places]))


class PricesWarning(UserWarning):
    """A warning of an answer, such as a value that matches nothing or a missing rate."""


class _Transient(Exception):
    """A PricesError that is retried; seconds to wait first, None for the default wait."""


def _are(values: Any, *members: str) -> bool:
    """True for a list of dicts in which these members are texts."""
    return isinstance(values, list) and all(isinstance(each, dict) and all(
        isinstance(each.get(name), str) for name in members) for each in values)


class _Closable(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Adds its socket to a request, so that the caller can close the connection at any time."""

    def do_open(self, http_class: Any, req: Any, **options: Any) -> Any:
        def connect(*place: Any) -> socket.socket:
            sock = socket.create_connection(*place)
            req.sockets.append(sock.dup())  # TLS detaches the socket itself.
            if req.is_over:
                raise socket.timeout()
            return sock

        def connection(host: str, **more: Any) -> Any:
            made = http_class(host, **more)
            made._create_connection = connect
            return made

        return super().do_open(connection, req, **options)


class Results(list):
    """Records as the service sends them: prices, results of a search, or markets. metadata:
    `$metadata` of the answer, empty for markets. revision: the revision of the data."""

    def __init__(self, data: list[Any], metadata: Any, decimal: Optional[bool] = None) -> None:
        super().__init__(data)
        self.metadata: Mapping[str, Any] = metadata
        self.revision: Optional[str] = metadata.get("revision")
        self._decimal = decimal  # None: the records have no points.

    def _points(self) -> Iterator[tuple[Any, ...]]:
        number = Decimal if self._decimal else float
        for record in self:
            code, name, unit = record["code"], record["name"], record["unitOfMeasure"]["symbol"]
            currency = record["currency"] and record["currency"]["iso"]
            for point in record["series"]:
                values = [None if (it := point[each]) is None else number(it) for each in NUMBERS]
                yield code, name, point["date"], *values, currency, unit, int(point["corrections"])

    def rows(self) -> list[dict[str, Any]]:
        """One dict for each price and date. A price without points has none."""
        points = (dict(zip(COLUMNS, point)) for point in self._points())
        return list(self if self._decimal is None else points)

    def df(self) -> Any:
        """The rows as a pandas DataFrame, `date` as datetime64. Without rows it has all columns."""
        import pandas  # Needed here only.
        if self._decimal is None:
            return pandas.DataFrame(list(self), columns=None if self else FOUND)
        frame = pandas.DataFrame(self._points(), columns=COLUMNS).astype({"corrections": "int64"})
        frame["date"] = pandas.to_datetime(frame["date"], format="%Y-%m-%d")
        return frame if self._decimal else frame.astype(dict.fromkeys(NUMBERS, "float64"))


class Changes(list):
    """A page of the change feed. next_seq: `after` of the next page."""

    def __init__(self, data: list[dict[str, Any]], next_seq: str, revision: Optional[str]) -> None:
        super().__init__(data)
        self.next_seq, self.revision = next_seq, revision


def _secret(text: str) -> str:
    """A pattern that finds a credential in the encodings of an echo, also cut after 12 characters."""
    codes = [(re.escape(each), f"{ord(each):02x}") for each in text]
    forms = [rf"(?:\\{{0,4}}{it}|%(?:25){{0,4}}{code}|\\{{1,4}}u00{code})" for it, code in codes]
    return "".join(forms[:12] + [f"{each}?" for each in forms[12:]])


def _plain(value: Any) -> Any:
    """Converts dates, sets, iterators, and arrays of numpy and pandas to JSON values."""
    if hasattr(value, "isoformat"):
        return re.sub(r"T00:00:00$", "", value.isoformat())
    return value.tolist() if hasattr(value, "tolist") else list(value)


def _retry_after(text: Optional[str]) -> Optional[float]:
    """Seconds of a Retry-After, which may be a date. None if it is missing or malformed."""
    if re.fullmatch(r"\s*\d{1,9}\s*", text or ""):
        return float(text or "")
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        return max(0.0, email.utils.parsedate_to_datetime(text or "").timestamp() - time.time())
    return None


class Client:
    """Calls of one service with one API key. url: address of the service, without /v3. decimal:
    every number as an exact decimal.Decimal instead of int and float. timeout: seconds of a call
    with all its attempts. monotonic: no answer is older than one before it at the same address."""

    def __init__(self, url: Optional[str] = None, key: Optional[str] = None, *,
                 decimal: bool = False, timeout: float = 60.0, monotonic: bool = True) -> None:
        address = url or os.environ.get("COMMODITY_PRICES_URL") or "http://127.0.0.1:3000"
        if re.search("[@?#]", address) or _KEY.search(urllib.parse.unquote(address)):
            raise PricesError("The address holds a credential or a query; give the API key as key")
        if not re.fullmatch(r"https?://[^/\s]\S*", address, re.IGNORECASE):
            raise PricesError(f"{address!r} is no address such as https://prices.example.com")
        self._key = os.environ.get("COMMODITY_PRICES_KEY", "") if key is None else key
        if not self._key:
            raise PricesError("There is no API key; set COMMODITY_PRICES_KEY, or give key")
        if not re.fullmatch(r"[\x21-\x7e]+", self._key):
            raise PricesError("The API key holds a space, a line end or another illegal character")
        users = [urllib.parse.unquote(it.rpartition("@")[0].rpartition("/")[2])
                 for it in urllib.request.getproxies().values() if "@" in it]
        sent = [self._key, *(base64.b64encode(it.encode()).decode() for it in users)]
        self._secrets = re.compile("|".join(map(_secret, sent)), re.IGNORECASE)
        self._url = re.sub(r"/v3(/prices)?$", "", address.rstrip("/"))
        self._decimal, self._timeout, self._monotonic = decimal, timeout, monotonic
        self._opener = urllib.request.OpenerDirector()  # A redirect would take the key elsewhere.
        for handler in (urllib.request.ProxyHandler(), _Closable()):
            self._opener.add_handler(handler)

    def _hide(self, text: str) -> str:
        """A text of an answer without the credentials of the request, which a server may echo."""
        return self._secrets.sub("[secret]", text)

    def prices(self, market: str, *, timeout: Optional[float] = None, **request: Any) -> Results:
        """The prices of a market that pass the filters, with their series unless
        includeSeries=False. A filter is a list or a text, dateFrom and dateTo are dates. Options
        stand beside filters. Warnings of the answer reach warnings.warn. Raises PricesError."""
        body: dict[str, dict[str, Any]] = {"filters": {}, "options": {"includeSeries": True}}
        for name, it in request.items():
            member = re.sub(r"_([a-z])", lambda found: found.group(1).upper(), name)
            if name != member and member in request:
                raise PricesError(f"{name} and {member} are one argument; give one of them")
            one = isinstance(it, str) and member not in {*OPTIONS, "dateFrom", "dateTo"}
            if it is not None:
                body["options" if member in OPTIONS else "filters"][member] = [it] if one else it
        path = f"/v3/prices/{urllib.parse.quote(market, safe='')}"
        sent = json.dumps(body, default=_plain).encode()
        data, metadata, _ = self._page(path, timeout, "revision", body=sent)
        for each in metadata.get("warnings", []):
            text = self._hide(f"{market}: {each['code']} {each.get('pointer')}: {each['detail']}")
            own = sum(f.f_globals is globals() for f, _ in traceback.walk_stack(sys._getframe()))
            warnings.warn(text, PricesWarning, stacklevel=own + 1)  # Names the line of the user.
        return Results(data, metadata, self._decimal)

    def pages(self, market: str, *, limit: int = 100, **request: Any) -> Iterator[Results]:
        """The same in pages of `limit` records, all of one revision."""
        more: Any = True
        while more:
            yield (page := self.prices(market, limit=limit, **request))
            more = request["cursor"] = page.metadata.get("nextCursor")

    def changes(self, *, after: Optional[str] = None, market: Union[str, list[str], None] = None,
                limit: Optional[int] = None, wait: Optional[int] = None,
                timeout: Optional[float] = None) -> Changes:
        """The changes after a position, oldest first. It waits for the first one for at most
        `wait` seconds. Continue with after=page.next_seq."""
        data, metadata, headers = self._page("/v3/changes", timeout, "nextSeq", after=after,
                                             market=market, limit=limit, wait=wait)
        return Changes(data, metadata["nextSeq"], headers.get("x-data-revision"))

    def search(self, text: str, *, limit: Optional[int] = None,
               timeout: Optional[float] = None) -> Results:
        """Prices of all readable markets that match a text, the best first."""
        return Results(*self._page("/v3/search", timeout, "revision", q=text, limit=limit)[:2])

    def markets(self, *, timeout: Optional[float] = None) -> Results:
        """All markets, with details of the readable ones."""
        return Results(*self._page("/v3/prices", timeout)[:2])

    def _page(self, path: str, timeout: Any, *texts: str, body: Any = None, **query: Any) -> Any:
        """Records, metadata and headers of a response whose metadata have these texts."""
        sent = {name: value for name, value in query.items() if value is not None}
        path += f"?{urllib.parse.urlencode(sent, doseq=True)}" if sent else ""
        answer, headers = self._call(path, body, timeout)
        if answer is None and texts == ("nextSeq",):  # 204
            answer = {"$metadata": {"nextSeq": headers.get("x-next-seq")}, "data": []}
        with contextlib.suppress(LookupError, TypeError, ValueError, ArithmeticError):
            data, metadata = answer["data"], answer.get("$metadata", {})
            if (_are(data, "code" if texts else "slug") and _are([metadata], *texts)
                    and metadata.get("count", len(data)) == len(data)
                    and _are(metadata.get("warnings", []), "code", "detail")):
                # Raises if a price lacks what its rows need.
                list(Results(data, metadata, self._decimal)._points() if body else ())
                return data, metadata, headers
        raise PricesError(f"{self._url} is no Commodity Prices Service of version 3, or its answer "
                          f"lacks a part: {self._hide(json.dumps(answer, default=str))[:200]}")

    def _call(self, path: str, body: Optional[bytes], timeout: Optional[float]) -> Any:
        """The response and its headers. Retries are safe, because every call only reads."""
        if _KEY.search(urllib.parse.unquote(path)):
            raise PricesError("An argument holds a credential; give the API key as key")
        seconds = self._timeout if timeout is None else timeout
        if not 0 < seconds <= 2e6:  # A socket takes no timeout above 24 days.
            raise PricesError("timeout must be above 0 and at most 2,000,000 seconds")
        deadline = time.monotonic() + seconds
        for attempt in range(RETRIES + 1):
            try:
                return self._attempt(path, body, deadline)
            except _Transient as transient:
                error, after = transient.args
                wait = 0.5 * 2**attempt if after is None else after
                if attempt == RETRIES or time.monotonic() + wait >= deadline:
                    raise error from None
                time.sleep(wait)

    def _attempt(self, path: str, body: Optional[bytes], deadline: float) -> Any:
        headers = {"accept": "application/json, application/problem+json", "x-api-key": self._key,
                   "accept-encoding": "gzip", "user-agent": "commodity-prices-python/1",
                   "content-type": "application/json"}
        if self._monotonic and self._url in _newest:
            headers["x-min-revision"] = _newest[self._url][1]
        request: Any = urllib.request.Request(self._url + path, body, headers)
        request.sockets, request.is_over = [], False
        left, done = max(0.01, deadline - time.monotonic()), []

        def ask() -> None:
            try:
                with self._opener.open(request, timeout=left + 1) as answer:
                    done.append(self._read(answer))
            except (OSError, http.client.HTTPException) as error:
                text = f"The connection to {self._url} failed: {getattr(error, 'reason', error)}"
                done.append(_Transient(PricesError(self._hide(text)), None))
            except Exception as error:
                done.append(error)

        # A lookup has no timeout, and that of a socket restarts at each address and each byte.
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        try:
            thread.join(left)
            if not done:
                raise PricesError(f"{self._url} did not answer in time")
        finally:
            request.is_over = True
            for sock in request.sockets:
                with sock, contextlib.suppress(OSError):  # The connection has ended.
                    sock.shutdown(socket.SHUT_RDWR)
        if isinstance(done[0], Exception):
            raise done[0]
        return done[0]

    def _remember(self, headers: Any) -> None:
        """Keeps the newest revision. Numbers of another history say nothing about age."""
        seen = re.fullmatch(r"[0-9a-z]+\.(\d{1,18})", headers.get("x-data-revision", ""))
        known = {} if "x-min-revision-unknown" in headers else _newest
        with _lock:
            if seen:
                _newest[self._url] = max(known.get(self._url, (-1, "")), (int(seen[1]), seen[0]))

    def _read(self, answer: Any) -> Any:
        status, headers = answer.status, answer.headers
        self._remember(headers)
        try:
            body, is_whole = answer.read(), True
        except http.client.IncompleteRead as cut:
            body, is_whole = cut.partial, False
        if headers.get("content-encoding") == "gzip" and body:
            inflate = zlib.decompressobj(31)
            with contextlib.suppress(zlib.error):
                body = inflate.decompress(body)
            is_whole = is_whole and inflate.eof
        start = repr(self._hide(body[:4000].decode("utf-8", "replace"))[:200])
        if not is_whole or (status == 200 and not body):  # http.client accepts a truncated head.
            text = f"{self._url} sent a part of its answer only: {start}"
            raise _Transient(PricesError(text, status), None)
        kind = headers.get("content-type", "none").split(";")[0].strip().lower()
        wanted = "application/json" if status == 200 else "application/problem+json"
        content = None
        with contextlib.suppress(ValueError, RecursionError):
            text = body if status == 200 else self._hide(body.decode())
            content = json.loads(text if kind == wanted else "", **_EXACT if self._decimal else {})
        if status == 204 or (status == 200 and content is not None):
            return content, headers
        known = content if _are([content], "code", "detail") else {}
        why = "that is broken or foreign" if kind == wanted else f"instead of {wanted}"
        detail = known.get("detail", f"{self._url} answered {status} with {kind} {why}: {start}")
        if status // 100 == 3 and (place := re.split("[?#]", headers.get("location", ""))[0]):
            detail = f"{self._url} answered {status}, a redirect: set the final address, {place}"
        if status == 404:
            detail += f" ({answer.url}; this client is for version 3 of the service)"
        error = PricesError(self._hide(detail), status, *map(known.get, ("code", "errors", "requestId")))
        after = _retry_after(headers.get("retry-after"))
        raise _Transient(error, after) if status in TRANSIENT else error


# The same with Client(), which takes address and key from the environment.
def prices(market: str, **request: Any) -> Results:
    return Client().prices(market, **request)
def pages(market: str, **request: Any) -> Iterator[Results]:
    return Client().pages(market, **request)
def changes(**request: Any) -> Changes:
    return Client().changes(**request)
def search(text: str, **request: Any) -> Results:
    return Client().search(text, **request)
def markets() -> Results:
    return Client().markets()
