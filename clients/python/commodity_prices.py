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
NUMBERS = ("low", "mid", "high")
OPTIONS = frozenset("""includeSeries includeSummary currency unitOfMeasure onUnconvertible decimals
    aggregate asOf revision limit cursor strict lastObservations decimalsAsText columns layout
    warnings""".split())
_newest: dict[str, tuple[int, str]] = {}  # The newest revision of each address: number and text.
_lock = threading.Lock()


class PricesError(Exception):
    """A failed call. A member is None if the service did not send it.

    status: HTTP status. code: stable code of the refusal. errors: a dict with pointer, code and
    detail for each violation. request_id: for questions to the operator.
    """

    def __init__(self, message: str, status: Optional[int] = None, code: Optional[str] = None,
                 errors: Optional[list[dict[str, str]]] = None,
                 request_id: Optional[str] = None) -> None:
        places = [f"{each.get('pointer')}: {each.get('detail')}" for each in errors or []]
        super().__init__("\n".join([message, *places]))
        self.status, self.code = status, code
        self.errors, self.request_id = errors or [], request_id


class PricesWarning(UserWarning):
    """A warning of an answer, such as a value that matches nothing or a missing rate."""


class _Transient(Exception):
    """A PricesError that is retried; seconds to wait first, None for the default wait."""


def _shut_down(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # The connection has ended.
        sock.shutdown(socket.SHUT_RDWR)


class _Bounded(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Shuts a connection down at the deadline: the timeout of a socket restarts at each byte."""

    def do_open(self, http_class: Any, req: Any, **options: Any) -> Any:
        class Answer(http.client.HTTPResponse):
            def __init__(self, sock: socket.socket, *more: Any, **options: Any) -> None:
                super().__init__(sock, *more, **options)
                left = max(0.0, req.deadline - time.monotonic())
                self.timer = threading.Timer(left, _shut_down, [sock])
                self.timer.daemon = True
                self.timer.start()

            def close(self) -> None:
                self.timer.cancel()
                super().close()

        bounded: Any = type("Bounded", (http_class,), {"response_class": Answer})
        return super().do_open(bounded, req, **options)


class Results(list):
    """Records as the service sends them: prices, results of a search, or markets.

    metadata: `$metadata` of the answer, empty for markets. revision: the revision of the data.
    """

    def __init__(self, data: list[dict[str, Any]], metadata: Mapping[str, Any],
                 decimal: Optional[bool] = None) -> None:
        super().__init__(data)
        self.metadata = metadata
        self.revision: Optional[str] = metadata.get("revision")
        self._decimal = decimal  # None: the records have no points.

    def _points(self) -> Iterator[tuple[Any, ...]]:
        number = Decimal if self._decimal else float
        for record in self:
            code, name, unit = record["code"], record["name"], record["unitOfMeasure"]["symbol"]
            currency = record["currency"] and record["currency"]["iso"]
            for point in record["series"]:
                low, mid, high = [None if point[each] is None else number(point[each])
                                  for each in NUMBERS]
                yield (code, name, point["date"], low, mid, high, currency, unit,
                       int(point["corrections"]))

    def rows(self) -> list[dict[str, Any]]:
        """One dict for each price and date. A price without points has none."""
        if self._decimal is None:
            return list(self)
        return [dict(zip(COLUMNS, point)) for point in self._points()]

    def df(self) -> Any:
        """The rows as a pandas DataFrame, `date` as datetime64. Without rows it has all columns."""
        import pandas  # Needed here only.
        if self._decimal is None:
            return pandas.DataFrame(list(self))
        frame = pandas.DataFrame(list(self._points()), columns=COLUMNS)
        frame["date"] = pandas.to_datetime(frame["date"], format="%Y-%m-%d")
        return frame if self._decimal else frame.astype(dict.fromkeys(NUMBERS, "float64"))


class Changes(list):
    """A page of the change feed. next_seq: `after` of the next page."""

    def __init__(self, data: list[dict[str, Any]], next_seq: str, revision: Optional[str]) -> None:
        super().__init__(data)
        self.next_seq, self.revision = next_seq, revision


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
    """Calls of one service with one API key.

    url: address of the service, without /v3. decimal: every number as decimal.Decimal, exact to the
    last digit, instead of int and float. timeout: seconds of a call, with all of its attempts.
    monotonic: no answer is older than one that this program has from the same address.
    """

    def __init__(self, url: Optional[str] = None, key: Optional[str] = None, *,
                 decimal: bool = False, timeout: float = 60.0, monotonic: bool = True) -> None:
        address = url or os.environ.get("COMMODITY_PRICES_URL") or "http://127.0.0.1:3000"
        parts = urllib.parse.urlsplit(address)
        if (re.search("cps_[a-z]+_", urllib.parse.unquote(address), re.IGNORECASE)
                or "@" in address or parts.query or parts.fragment):
            raise PricesError("The address holds a credential or a query; give the API key as key")
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise PricesError(f"{address!r} is no address such as https://prices.example.com")
        self._key = key or os.environ.get("COMMODITY_PRICES_KEY") or ""
        if not self._key:
            raise PricesError("There is no API key; set COMMODITY_PRICES_KEY, or give key")
        if not re.fullmatch(r"[\x21-\x7e]+", self._key):
            raise PricesError("The API key holds a space, a line end or another illegal character")
        self._url = re.sub(r"/v3(/prices)?$", "", address.rstrip("/"))
        self._decimal, self._timeout, self._monotonic = decimal, timeout, monotonic
        self._opener = urllib.request.OpenerDirector()  # A redirect would take the key elsewhere.
        for handler in (urllib.request.ProxyHandler(), _Bounded()):
            self._opener.add_handler(handler)

    def prices(self, market: str, *, timeout: Optional[float] = None, **request: Any) -> Results:
        """The prices of a market that pass the filters, with their series unless
        includeSeries=False. Filters are lists, dateFrom and dateTo dates; options go beside them.
        Reports the warnings of the answer by warnings.warn. Raises PricesError."""
        body: dict[str, dict[str, Any]] = {"filters": {}, "options": {"includeSeries": True}}
        for name, value in request.items():
            member = re.sub(r"_([a-z])", lambda found: found.group(1).upper(), name)
            if name != member and member in request:
                raise PricesError(f"{name} and {member} are one argument; give one of them")
            if value is not None:
                body["options" if member in OPTIONS else "filters"][member] = value
        path = f"/v3/prices/{urllib.parse.quote(market, safe='')}"
        answer, _ = self._call(path, json.dumps(body, default=_plain).encode(), timeout)
        metadata = self._checked(answer, "$metadata", dict)
        for each in metadata.get("warnings", []):
            near = ", ".join(each.get("suggestions", []))
            hint = f"; did you mean {near}?" if near and near not in each["detail"] else ""
            text = f"{market}: {each['code']} {each['pointer']}: {each['detail']}{hint}"
            stack = traceback.walk_stack(sys._getframe())
            own = sum(frame.f_globals is globals() for frame, _ in stack)
            warnings.warn(text, PricesWarning, stacklevel=own + 1)  # Names the line of the user.
        return Results(self._checked(answer, "data", list), metadata, self._decimal)

    def pages(self, market: str, *, limit: int = 100, **request: Any) -> Iterator[Results]:
        """The same in pages of `limit` records, all of one revision."""
        cursor = request.pop("cursor", None)
        while True:
            page = self.prices(market, limit=limit, cursor=cursor, **request)
            yield page
            if (cursor := page.metadata.get("nextCursor")) is None:
                return

    def changes(self, *, after: Optional[str] = None, market: Union[str, list[str], None] = None,
                limit: Optional[int] = None, wait: Optional[int] = None,
                timeout: Optional[float] = None) -> Changes:
        """The changes after a position, oldest first. It waits for the first one for at most
        `wait` seconds. Continue with after=page.next_seq."""
        query = {"after": after, "market": market, "limit": limit, "wait": wait}
        answer, headers = self._get("/v3/changes", query, timeout)
        if answer is None:
            answer = {"$metadata": {"nextSeq": headers.get("x-next-seq")}, "data": []}
        next_seq = self._checked(self._checked(answer, "$metadata", dict), "nextSeq", str)
        return Changes(self._checked(answer, "data", list), next_seq,
                       headers.get("x-data-revision"))

    def search(self, text: str, *, limit: Optional[int] = None,
               timeout: Optional[float] = None) -> Results:
        """Prices of all readable markets that match a text, the best first."""
        answer, _ = self._get("/v3/search", {"q": text, "limit": limit}, timeout)
        metadata = self._checked(answer, "$metadata", dict)
        return Results(self._checked(answer, "data", list), metadata)

    def markets(self, *, timeout: Optional[float] = None) -> Results:
        """All markets, with details of the readable ones."""
        answer, _ = self._get("/v3/prices", {}, timeout)
        return Results(self._checked(answer, "data", list), {})

    def _get(self, path: str, query: Mapping[str, Any], timeout: Optional[float]) -> Any:
        sent = {name: value for name, value in query.items() if value is not None}
        return self._call(f"{path}?{urllib.parse.urlencode(sent, doseq=True)}", None, timeout)

    def _checked(self, answer: Any, name: str, kind: type) -> Any:
        if isinstance(answer, dict) and isinstance(answer.get(name), kind):
            return answer[name]
        raise PricesError(f"{self._url} is no Commodity Prices Service of version 3: its answer "
                          f"has no {name}: {json.dumps(answer, default=str)[:200]}")

    def _call(self, path: str, body: Optional[bytes], timeout: Optional[float]) -> Any:
        """The response and its headers. Retries are safe, because every call only reads."""
        deadline = time.monotonic() + (self._timeout if timeout is None else timeout)
        for attempt in range(RETRIES + 1):
            try:
                return self._attempt(path, body, deadline)
            except _Transient as transient:
                error, after = transient.args
                wait = 0.5 * 2**attempt if after is None else after
                if attempt == RETRIES or time.monotonic() + wait >= deadline:
                    raise error from None
                time.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self, path: str, body: Optional[bytes], deadline: float) -> Any:
        headers = {"accept": "application/json, application/problem+json", "x-api-key": self._key,
                   "accept-encoding": "gzip", "user-agent": "commodity-prices-python/1",
                   "content-type": "application/json"}
        if self._monotonic and self._url in _newest:
            headers["x-min-revision"] = _newest[self._url][1]
        request = urllib.request.Request(self._url + path, body, headers)
        request.deadline = deadline  # type: ignore[attr-defined]
        try:
            left = max(0.01, deadline - time.monotonic())
            with self._opener.open(request, timeout=left) as answer:
                return self._read(answer, deadline)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, socket.timeout) or time.monotonic() >= deadline - 0.01:
                raise PricesError(f"{self._url} did not answer in time") from error
            text = f"The connection to {self._url} failed: {reason}"
            raise _Transient(PricesError(text), None) from error

    def _remember(self, headers: Any) -> None:
        """Keeps the newest revision. Numbers of another history say nothing about age."""
        seen = re.fullmatch(r"[0-9a-z]+\.(\d{1,18})", headers.get("x-data-revision", ""))
        known = {} if "x-min-revision-unknown" in headers else _newest
        with _lock:
            if seen:
                _newest[self._url] = max(known.get(self._url, (-1, "")), (int(seen[1]), seen[0]))

    def _read(self, answer: Any, deadline: float) -> Any:
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
        if time.monotonic() >= deadline - 0.01:
            raise socket.timeout()
        beginning = repr(body[:200].decode("utf-8", "replace"))
        if not is_whole or (status == 200 and not body):  # http.client accepts a truncated head.
            text = f"{self._url} sent a part of its answer only: {beginning}"
            raise _Transient(PricesError(text, status), None)
        kind = headers.get("content-type", "none").split(";")[0].strip().lower()
        wanted = "application/json" if status == 200 else "application/problem+json"
        content = None
        with contextlib.suppress(ValueError):
            if kind == wanted:
                exact = dict.fromkeys(("parse_float", "parse_int"), Decimal)
                content = json.loads(body, **exact if self._decimal else {})
        if status == 204 or (status == 200 and content is not None):
            return content, headers
        if isinstance(content, dict):
            detail = content.get("detail", "refused")
            if status == 404:
                detail += f" ({answer.url}; this client is for version 3 of the service)"
            error = PricesError(detail, status, *map(content.get, ("code", "errors", "requestId")))
        else:
            found = f"{kind} that is broken" if kind == wanted else f"{kind} instead of {wanted}"
            error = PricesError(f"{self._url} answered {status} with {found}: {beginning}", status)
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
