"""Client of the Commodity Prices Service, version 3. Python 3.9 or newer, no other package.

    import commodity_prices as cp
    prices = cp.prices("nickel", regions=["Europe"], dateFrom="2026-01-01", currency="EUR")
    prices.revision      # the state of the data, for a repetition: revision=...
    prices[0]["series"]  # records as the service sends them
    prices.rows()        # one dict for each price and date
    prices.df()          # the same as a pandas DataFrame

The address and the API key are taken from COMMODITY_PRICES_URL and COMMODITY_PRICES_KEY, or given
to Client(url, key). Filters and options have the names of the interface; date_from is dateFrom.
"""

from __future__ import annotations

import email.utils
import http.client
import json
import os
import re
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
import warnings
import zlib
from decimal import Decimal
from typing import Any, Iterator, Mapping, Optional, Union

__all__ = ["Changes", "Client", "PricesError", "PricesWarning", "Results", "changes", "markets",
           "pages", "prices", "search"]

RETRIES = 3
CHUNK_BYTES = 65_536
COLUMNS = ("code", "name", "date", "low", "mid", "high", "currency", "unit", "corrections")
OPTIONS = frozenset([
    "includeSeries", "includeSummary", "currency", "unitOfMeasure", "onUnconvertible", "decimals",
    "aggregate", "asOf", "revision", "limit", "cursor", "strict", "lastObservations",
])
KEY = re.compile(r"cps_[a-z]+_", re.IGNORECASE)


class PricesError(Exception):
    """A call that has no answer. What it carries is None where the service did not say it.

    status: HTTP status. code: stable code of the refusal. errors: a dict with pointer, code and
    detail for each place that breaks a rule. request_id: for questions to the operator.
    """

    def __init__(self, message: str, status: Optional[int] = None, code: Optional[str] = None,
                 errors: Optional[list[dict[str, str]]] = None,
                 request_id: Optional[str] = None) -> None:
        places = [f"{each.get('pointer')}: {each.get('detail')}" for each in errors or []]
        super().__init__("\n".join([message, *places]))
        self.status = status
        self.code = code
        self.errors = errors or []
        self.request_id = request_id


class PricesWarning(UserWarning):
    """What an answer warns of: values that match nothing, missing rates and the like."""


class _Passing(Exception):
    """A fault that another attempt may not meet. wait: seconds to wait first, None for any."""

    def __init__(self, error: PricesError, wait: Optional[float]) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait = wait


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to another address."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Results(list):
    """Records as the service sends them.

    revision: the state of the data. metadata: `$metadata` of the answer; of a search and of the
    list of markets the same, as far as they have it.
    """

    def __init__(self, data: list[dict[str, Any]], metadata: Mapping[str, Any],
                 decimal: bool) -> None:
        super().__init__(data)
        self.metadata = metadata
        self.revision: Optional[str] = metadata.get("revision")
        self._decimal = decimal

    def columns(self) -> dict[str, list[Any]]:
        """The points of all records as one list for each column of COLUMNS."""
        columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        number = Decimal if self._decimal else float
        for record in self:
            points = record["series"]
            currency = record["currency"]
            same = {
                "code": record["code"], "name": record["name"],
                "currency": currency["iso"] if currency else None,
                "unit": record["unitOfMeasure"]["symbol"],
            }
            for name, value in same.items():
                columns[name] += [value] * len(points)
            columns["date"] += [point["date"] for point in points]
            columns["corrections"] += [point.get("corrections") for point in points]
            for name in ("low", "mid", "high"):
                values = [point[name] for point in points]
                columns[name] += [None if each is None else number(each) for each in values]
        return columns

    def rows(self) -> list[dict[str, Any]]:
        """One dict for each price and date. A price without points has none."""
        return [dict(zip(COLUMNS, values)) for values in zip(*self.columns().values())]

    def df(self) -> Any:
        """The rows as a pandas DataFrame, `date` as datetime64. Without rows it has all columns."""
        import pandas  # Needed here only.
        frame = pandas.DataFrame(self.columns(), columns=list(COLUMNS))
        frame["date"] = pandas.to_datetime(frame["date"], format="%Y-%m-%d")
        if not self._decimal:
            frame = frame.astype({name: "float64" for name in ("low", "mid", "high")})
        return frame


class Changes(list):
    """A page of the feed of changes. next_seq: `after` of the next page."""

    def __init__(self, data: list[dict[str, Any]], next_seq: str, revision: Optional[str]) -> None:
        super().__init__(data)
        self.next_seq = next_seq
        self.revision = revision


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match.group(1).upper(), name)


def _beginning(body: bytes) -> str:
    return repr(body[:200].decode("utf-8", "replace"))


def _retry_after(text: Optional[str]) -> Optional[float]:
    """Seconds of a Retry-After, which may be a date. None where it is missing or makes no sense."""
    if text is None:
        return None
    if re.fullmatch(r"\s*\d{1,9}\s*", text):
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


class Client:
    """Calls of one service with one API key.

    url: address of the service, without /v3. decimal: numbers as decimal.Decimal, exact to the last
    digit, instead of float. timeout: seconds that a call may take, with all of its attempts.
    """

    def __init__(self, url: Optional[str] = None, key: Optional[str] = None, *,
                 decimal: bool = False, timeout: float = 60.0) -> None:
        address = url or os.environ.get("COMMODITY_PRICES_URL") or "http://127.0.0.1:3000"
        parts = urllib.parse.urlsplit(address)
        if KEY.search(address) or parts.username or parts.query or parts.fragment:
            raise PricesError("The address holds a credential or a query; give the API key as key")
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise PricesError(f"{address!r} is no address such as https://prices.example.com")
        self._key = key or os.environ.get("COMMODITY_PRICES_KEY") or ""
        if not self._key:
            raise PricesError("There is no API key; set COMMODITY_PRICES_KEY, or give key")
        if not re.fullmatch(r"[\x21-\x7e]+", self._key):
            raise PricesError("The API key holds a space, a line end or another illegal character")
        self._url = re.sub(r"/v3(/prices)?$", "", address.rstrip("/"))
        self._decimal = decimal
        self._timeout = timeout
        self._opener = urllib.request.build_opener(_NoRedirects)

    def prices(self, market: str, *, timeout: Optional[float] = None, **request: Any) -> Results:
        """The prices of a market that pass the filters, with their series unless
        includeSeries=False. Filters are lists, dateFrom and dateTo dates; options go beside them.
        What the answer warns of is reported by warnings.warn. Raises PricesError."""
        body: dict[str, dict[str, Any]] = {"filters": {}, "options": {"includeSeries": True}}
        for name, value in request.items():
            if value is None:
                continue
            member = _camel(name)
            known = isinstance(value, (str, bool, int, Mapping))
            sent = value if known else value.isoformat() if hasattr(value, "isoformat") else value
            part = "options" if member in OPTIONS else "filters"
            body[part][member] = list(sent) if isinstance(sent, (set, tuple)) else sent
        path = f"/v3/prices/{urllib.parse.quote(market, safe='')}"
        answer, _ = self._call(path, json.dumps(body).encode(), timeout)
        metadata = self._checked(answer, "$metadata", dict)
        for each in metadata.get("warnings", []):
            near = ", ".join(each.get("suggestions", []))
            hint = f"; did you mean {near}?" if near and near not in each["detail"] else ""
            text = f"{market}: {each['code']} {each['pointer']}: {each['detail']}{hint}"
            warnings.warn(text, PricesWarning, stacklevel=2)
        return Results(self._checked(answer, "data", list), metadata, self._decimal)

    def pages(self, market: str, *, limit: int = 100, **request: Any) -> Iterator[Results]:
        """The same in pages of so many records, all of one state of the data."""
        cursor = request.pop("cursor", None)
        while True:
            page = self.prices(market, limit=limit, cursor=cursor, **request)
            yield page
            cursor = page.metadata.get("nextCursor")
            if cursor is None:
                return

    def changes(self, *, after: Optional[str] = None, market: Union[str, list[str], None] = None,
                limit: Optional[int] = None, wait: Optional[int] = None,
                timeout: Optional[float] = None) -> Changes:
        """The changes after a position, oldest first. It waits for the first one for at most
        `wait` seconds. Go on with after=page.next_seq."""
        query = {"after": after, "market": market, "limit": limit, "wait": wait}
        answer, headers = self._get("/v3/changes", query, timeout)
        if answer is None:
            return Changes([], headers["x-next-seq"], headers.get("x-data-revision"))
        next_seq = self._checked(answer, "$metadata", dict)["nextSeq"]
        return Changes(self._checked(answer, "data", list), next_seq,
                       headers.get("x-data-revision"))

    def search(self, text: str, *, limit: Optional[int] = None,
               timeout: Optional[float] = None) -> Results:
        """Prices of all opened markets that match a text, the best first."""
        answer, _ = self._get("/v3/search", {"q": text, "limit": limit}, timeout)
        metadata = self._checked(answer, "$metadata", dict)
        return Results(self._checked(answer, "data", list), metadata, self._decimal)

    def markets(self, *, timeout: Optional[float] = None) -> Results:
        """All markets, and what the opened ones hold."""
        answer, _ = self._get("/v3/prices", {}, timeout)
        return Results(self._checked(answer, "data", list), {}, self._decimal)

    def _get(self, path: str, query: Mapping[str, Any], timeout: Optional[float]) -> Any:
        sent = {name: value for name, value in query.items() if value is not None}
        text = urllib.parse.urlencode(sent, doseq=True)
        return self._call(f"{path}?{text}" if text else path, None, timeout)

    def _checked(self, answer: Any, name: str, kind: type) -> Any:
        if isinstance(answer, dict) and isinstance(answer.get(name), kind):
            return answer[name]
        raise PricesError(f"{self._url} is no Commodity Prices Service of version 3: its answer "
                          f"has no {name}: {json.dumps(answer, default=str)[:200]}")

    def _call(self, path: str, body: Optional[bytes], timeout: Optional[float]) -> Any:
        """The answer and its headers. Every call only reads, so it may be tried again."""
        deadline = time.monotonic() + (self._timeout if timeout is None else timeout)
        for attempt in range(RETRIES + 1):
            try:
                return self._attempt(path, body, deadline)
            except _Passing as passing:
                wait = 0.5 * 2**attempt if passing.wait is None else passing.wait
                if attempt == RETRIES or time.monotonic() + wait >= deadline:
                    raise passing.error from None
                time.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self, path: str, body: Optional[bytes], deadline: float) -> Any:
        headers = {"accept": "application/json, application/problem+json", "x-api-key": self._key,
                   "accept-encoding": "gzip", "user-agent": "commodity-prices-python/1"}
        if body is not None:
            headers["content-type"] = "application/json"
        request = urllib.request.Request(self._url + path, body, headers)
        try:
            left = max(0.01, deadline - time.monotonic())
            try:
                answer = self._opener.open(request, timeout=left)
            except urllib.error.HTTPError as refused:
                answer = refused
            with answer:
                return self._read(answer, deadline)
        except socket.timeout as error:  # TimeoutError since Python 3.10.
            raise PricesError(f"{self._url} did not answer in time") from error
        except (OSError, http.client.HTTPException) as error:
            if isinstance(getattr(error, "reason", None), socket.timeout):
                raise PricesError(f"{self._url} did not answer in time") from error
            text = f"The connection to {self._url} failed: {getattr(error, 'reason', error)}"
            raise _Passing(PricesError(text), None) from error

    def _read(self, answer: Any, deadline: float) -> Any:
        status, headers = answer.status, answer.headers
        if status == 204:
            return None, headers
        coding = headers.get("content-encoding", "identity")
        inflate = zlib.decompressobj(31) if coding == "gzip" else None
        parts = []
        while chunk := answer.read(CHUNK_BYTES):
            parts.append(inflate.decompress(chunk) if inflate else chunk)
            if time.monotonic() > deadline:
                raise PricesError(f"{self._url} did not answer in time")
        body = b"".join(parts)
        if (inflate and not inflate.eof) or answer.length:
            text = f"{self._url} sent a part of its answer only: {_beginning(body)}"
            raise _Passing(PricesError(text, status), None)
        kind = headers.get("content-type", "none").split(";")[0].strip().lower()
        wanted = "application/json" if status == 200 else "application/problem+json"
        content = None
        if kind == wanted:
            try:
                content = json.loads(body, parse_float=Decimal if self._decimal else None)
            except ValueError:
                pass
        if status == 200 and content is not None:
            return content, headers
        if isinstance(content, dict):
            detail = content.get("detail", "refused")
            if status == 404:
                detail += f" ({answer.url}; this client is for version 3 of the service)"
            error = PricesError(detail, status, content.get("code"), content.get("errors"),
                                content.get("requestId"))
        else:
            text = f"{self._url} answered {status} with {kind} instead of {wanted}: "
            error = PricesError(text + _beginning(body), status)
        if status in (429, 503):
            raise _Passing(error, _retry_after(headers.get("retry-after")))
        raise error


def prices(market: str, **request: Any) -> Results:
    """Client().prices: the prices of a market."""
    return Client().prices(market, **request)


def pages(market: str, **request: Any) -> Iterator[Results]:
    """Client().pages: the prices of a market in pages."""
    return Client().pages(market, **request)


def changes(**request: Any) -> Changes:
    """Client().changes: a page of the feed of changes."""
    return Client().changes(**request)


def search(text: str, **request: Any) -> Results:
    """Client().search: prices that match a text."""
    return Client().search(text, **request)


def markets() -> Results:
    """Client().markets: all markets."""
    return Client().markets()
