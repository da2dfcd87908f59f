"""Client of the Commodity Prices Service, version 3. Python 3.9 or newer, no other package.

    import commodity_prices as cp
    prices = cp.prices("nickel", regions=["Europe"], dateFrom="2026-01-01", currency="EUR")
    prices.revision      # the revision of the data; revision=... repeats the answer
    prices[0]["series"]  # records as the service sends them
    prices.rows()        # one dict for each price and date
    prices.df()          # the same as a pandas DataFrame

The address and the credential come from COMMODITY_PRICES_URL and COMMODITY_PRICES_KEY or
COMMODITY_PRICES_TOKEN, or from Client(url, key) and Client(url, token=...). Filters and options
have the names of the interface; date_from is dateFrom. commodity_prices_types.py beside this file
has the types of records for type checkers; nothing needs it at run time.
"""

from __future__ import annotations

import base64
import contextlib
import email.utils
import http.client
import json
import os
import random
import re
import socket
import ssl
import sys
import threading
import time
import traceback
import urllib.parse
import urllib.request
import warnings
import zlib
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Optional, TypeVar, Union, cast

if TYPE_CHECKING:
    from commodity_prices_types import CalculationResult, Change, CurrencyEntry, DuePrice
    from commodity_prices_types import FilterValue, MarketSummary, Me
    from commodity_prices_types import PriceRecord, RateEntry, SearchResult, UnitEntry

__all__ = ["Changes", "Client", "PriceFile", "PricesError", "PricesWarning", "Results",
           "calculate", "calendar", "changes", "currencies", "file", "filters", "markets", "me",
           "pages", "prices", "rates", "search", "units"]

RETRIES = 3
TRANSIENT = (304, 429, 502, 503, 504)  # 304 to an unconditional request: a cache is at fault.
MEDIA = {"csv": "text/csv", "ndjson": "application/x-ndjson",
         "rows": "application/json;profile=rows", "parquet": "application/vnd.apache.parquet",
         "arrow": "application/vnd.apache.arrow.stream",
         "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}
COLUMNS = ["code", "name", "date", "low", "mid", "high", "currency", "unit", "corrections"]
FOUND = """market code name shortName matched lastAssessedAt latestPublishedAt nextExpectedAt
    product priceCategory frequency unitOfMeasure currency priceType reference""".split()
NUMBERS = ("low", "mid", "high")
OPTIONS = frozenset("""includeSeries includeSummary currency unitOfMeasure onUnconvertible decimals
    aggregate asOf revision limit cursor strict lastObservations decimalsAsText columns layout
    warnings movingAverage rates csvDialect vat""".split())
Record = TypeVar("Record")
_newest: dict[str, tuple[int, str]] = {}  # The newest revision of each address: number and text.
_lock = threading.Lock()
_EXACT: Any = {"parse_float": Decimal, "parse_int": Decimal}
_KEY = re.compile(r"cps_[a-z]+_|eyJ[\w-]+\.eyJ", re.IGNORECASE)


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


class Results(list[Record]):
    """Records as the service sends them: prices, results of a search, markets, or reference data.
    metadata: `$metadata` of the answer, empty for markets. revision: the revision of the data."""

    def __init__(self, data: list[Record], metadata: Any, decimal: Optional[bool] = None) -> None:
        super().__init__(data)
        self.metadata: Mapping[str, Any] = metadata
        self.revision: Optional[str] = metadata.get("revision")
        self._decimal = decimal  # None: the records have no points.

    def _points(self) -> Iterator[tuple[Any, ...]]:
        number = Decimal if self._decimal else float
        for record in cast("list[Any]", self):
            code, name, unit = record["code"], record["name"], record["unitOfMeasure"]["symbol"]
            currency = record["currency"] and record["currency"]["iso"]
            for point in record["series"]:
                values = [None if (it := point[each]) is None else number(it) for each in NUMBERS]
                yield code, name, point["date"], *values, currency, unit, int(point["corrections"])

    def rows(self) -> list[dict[str, Any]]:
        """One dict for each price and date. A price without points has none."""
        points = (dict(zip(COLUMNS, point)) for point in self._points())
        return list(cast("list[Any]", self) if self._decimal is None else points)

    def df(self) -> Any:
        """The rows as a pandas DataFrame, `date` as datetime64. Without rows it has all columns."""
        import pandas  # type: ignore[import-untyped, unused-ignore]
        if self._decimal is None:
            return pandas.DataFrame(list(self), columns=None if self else FOUND)
        frame = pandas.DataFrame(self._points(), columns=COLUMNS).astype({"corrections": "int64"})
        frame["date"] = pandas.to_datetime(frame["date"], format="%Y-%m-%d")
        return frame if self._decimal else frame.astype(dict.fromkeys(NUMBERS, "float64"))


class Changes(list["Change"]):
    """A page of the change feed. next_seq: `after` of the next page, read while has_more."""

    def __init__(self, data: list[Change], got: Any, at: Optional[str]) -> None:
        super().__init__(data)
        self.next_seq, self.revision, self.has_more = got["nextSeq"], at, bool(got.get("hasMore"))


def _close(sockets: list[socket.socket]) -> None:
    while sockets:
        with sockets.pop() as sock, contextlib.suppress(OSError):  # The connection has ended.
            sock.shutdown(socket.SHUT_RDWR)


class PriceFile:
    """Prices as bytes: read() returns all that is left, read(size) at most that many, b"" the end.
    Iteration and copying, such as shutil.copyfileobj, read it in pieces. It holds its connection
    until its end or close(); it is a context manager. PricesError if the connection breaks."""

    def __init__(self, url: str, answer: Any, sockets: list[socket.socket],
                 deadline: float) -> None:
        headers = answer.headers
        self.revision: Optional[str] = headers.get("x-data-revision")
        self.next_cursor: Optional[str] = headers.get("x-next-cursor")
        self._url, self._answer, self._sockets, self._deadline = url, answer, sockets, deadline
        self._left, is_coded = b"", headers.get("content-encoding") == "gzip"
        self._inflate = zlib.decompressobj(31) if is_coded else None
        # A read that waits for bytes ends when the connection is closed.
        self._timer = threading.Timer(max(0.0, deadline - time.monotonic()), _close, [sockets])
        self._timer.daemon = True
        self._timer.start()

    def _piece(self) -> bytes:
        """The next decoded bytes, b"" at the end."""
        decoded, piece = b"", b"more"
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException, zlib.error):
            while piece and not decoded:
                piece = self._answer.read1(65_536)
                decoded = self._inflate.decompress(piece) if self._inflate and piece else piece
            is_cut = self._answer.length or (self._inflate and not self._inflate.eof)
            if decoded or not (is_cut or time.monotonic() >= self._deadline):
                return decoded
        self.close()
        is_late = time.monotonic() >= self._deadline
        what = "did not send its answer in time" if is_late else "sent a part of its answer only"
        raise PricesError(f"{self._url} {what}")

    def read(self, size: int = -1) -> bytes:
        pieces, length = [self._left], len(self._left)
        while (size < 0 or length < size) and (piece := self._piece()):
            pieces.append(piece)
            length += len(piece)
        whole = b"".join(pieces)
        cut = len(whole) if size < 0 else size
        self._left = whole[cut:]
        return whole[:cut]

    def __iter__(self) -> Iterator[bytes]:
        return iter(lambda: self.read(65_536), b"")

    def close(self) -> None:
        self._timer.cancel()
        _close(self._sockets)
        self._answer.close()

    def __enter__(self) -> PriceFile:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _secret(text: str) -> str:
    """A pattern that finds a credential in the encodings of an echo, also cut after 12 characters.
    After 64 it finds any text of its other characters: a whole token compiles slowly."""
    codes = [(re.escape(each), f"{ord(each):02x}") for each in text]
    forms = [rf"(?:\\{{0,4}}{it}|%(?:25){{0,4}}{code}|\\{{1,4}}u00{code})" for it, code in codes]
    rest = "|".join(dict.fromkeys(forms[64:]))
    cut = "".join(f"{each}?" for each in forms[12:64])
    return "".join(forms[:12]) + cut + (f"(?:{rest})*" if rest else "")


def _path(market: str) -> str:
    return f"/v3/prices/{urllib.parse.quote(market, safe='')}"


def _days(first: Any, last: Any) -> dict[str, Optional[str]]:
    texts = [each if each is None else str(_plain(each) if hasattr(each, "isoformat") else each)
             for each in (first, last)]
    return {"from": texts[0], "to": texts[1]}


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
    """Calls of one service with one credential. url: address of the service, without /v3. key: an
    API key. token: a bearer token instead, or a function that returns one and is called for each
    attempt of a call. decimal: every number as an exact decimal.Decimal instead of int and float.
    timeout: seconds of a call with all its attempts. monotonic: no answer is older than one before
    it at the same address. context: an ssl.SSLContext, such as one of a private CA."""

    def __init__(self, url: Optional[str] = None, key: Optional[str] = None, *,
                 token: Union[str, Callable[[], str], None] = None, decimal: bool = False,
                 timeout: float = 60.0, monotonic: bool = True, context: Any = None) -> None:
        address = url or os.environ.get("COMMODITY_PRICES_URL") or "http://127.0.0.1:3000"
        if re.search("[@?#]", address) or _KEY.search(urllib.parse.unquote(address)):
            raise PricesError("The address holds a credential or a query; give the API key as key")
        if not re.fullmatch(r"https?://[^/\s]\S*", address, re.IGNORECASE):
            raise PricesError(f"{address!r} is no address such as https://prices.example.com")
        if key is None and token is None:
            key = os.environ.get("COMMODITY_PRICES_KEY")
            token = os.environ.get("COMMODITY_PRICES_TOKEN")
        if key and token:
            raise PricesError("There are a key and a token; give one of them")
        self._is_token, self._credential = not key, key or token
        if not self._credential:
            raise PricesError("There is no API key; set COMMODITY_PRICES_KEY, or give key or token")
        if isinstance(self._credential, str):
            self._check(self._credential)
        self._users = [urllib.parse.unquote(it.rpartition("@")[0].rpartition("/")[2])
                       for it in urllib.request.getproxies().values() if "@" in it]
        self._secrets: dict[str, Any] = {}  # Patterns of the credentials that were sent last.
        self._url = re.sub(r"/v3(/prices)?$", "", address.rstrip("/"))
        self._decimal, self._timeout, self._monotonic = decimal, timeout, monotonic
        self._opener = urllib.request.OpenerDirector()  # A redirect would take the key elsewhere.
        for handler in (urllib.request.ProxyHandler(), _Closable(context=context)):
            self._opener.add_handler(handler)

    def _check(self, credential: str) -> None:
        if not re.fullmatch(r"[\x21-\x7e]+", credential):
            name = "token" if self._is_token else "API key"
            raise PricesError(f"The {name} holds a space, a line end or another illegal character")

    def _secret_now(self) -> str:
        """The credential of an attempt. From now on texts of answers are shown without it."""
        given = self._credential
        try:
            secret = cast(str, given() if callable(given) else given)
        except Exception as error:
            raise PricesError("No token: the function of the client failed") from error
        self._check(secret)
        if secret not in self._secrets:
            users = (base64.b64encode(it.encode()).decode() for it in self._users)
            pattern = "|".join(map(_secret, [secret, *users]))
            last = list(self._secrets.items())[-7:]  # Other threads may still read their answers.
            self._secrets = {**dict(last), secret: re.compile(pattern, re.IGNORECASE)}
        return secret

    def _hide(self, text: str) -> str:
        """A text of an answer without the credentials of the request, which a server may echo."""
        for pattern in self._secrets.values():
            text = pattern.sub("[secret]", text)
        return text

    def prices(self, market: str, *, timeout: Optional[float] = None,
               **request: Any) -> Results[PriceRecord]:
        """The prices of a market that pass the filters, with their series unless
        includeSeries=False. A filter is a list or a text, dateFrom and dateTo are dates. Options
        stand beside filters. Warnings of the answer reach warnings.warn. Raises PricesError."""
        path, sent = self._request(market, request)
        data, metadata, _ = self._page(path, timeout, "revision", body=sent)
        self._warn(market, metadata.get("warnings", []))
        return Results(data, metadata, self._decimal)

    def _request(self, market: str, request: Mapping[str, Any]) -> tuple[str, bytes]:
        """The path and the body of a request for prices."""
        body: dict[str, dict[str, Any]] = {"filters": {}, "options": {"includeSeries": True}}
        for name, it in request.items():
            member = re.sub(r"_([a-z])", lambda found: found.group(1).upper(), name)
            if name != member and member in request:
                raise PricesError(f"{name} and {member} are one argument; give one of them")
            one = isinstance(it, str) and member not in {*OPTIONS, "dateFrom", "dateTo"}
            if it is not None:
                body["options" if member in OPTIONS else "filters"][member] = [it] if one else it
        return _path(market), json.dumps(body, default=_plain).encode()

    def _warn(self, market: str, found: Any) -> None:
        for each in found:
            text = self._hide(f"{market}: {each['code']} {each.get('pointer')}: {each['detail']}")
            own = sum(f.f_globals is globals() for f, _ in traceback.walk_stack(sys._getframe()))
            warnings.warn(text, PricesWarning, stacklevel=own + 1)  # Names the line of the user.

    def file(self, market: str, format: str, *, timeout: Optional[float] = None,
             **request: Any) -> PriceFile:
        """The same as a file: csv, ndjson, rows (JSON), parquet, arrow or xlsx, with the options of
        the format. It is not kept in memory; `timeout` bounds its reading too."""
        if format not in MEDIA:
            raise PricesError(f"There is no format {format!r}, only {', '.join(MEDIA)}")
        path, sent = self._request(market, request)
        made, headers = self._call(path, sent, timeout, MEDIA[format])
        found: Any = []
        with contextlib.suppress(ValueError):
            found = json.loads(headers.get("x-warnings", "[]"))
        self._warn(market, found if _are(found, "code", "detail") else [])
        return made

    def pages(self, market: str, *, limit: int = 100,
              **request: Any) -> Iterator[Results[PriceRecord]]:
        """The same in pages of `limit` records, all of one revision."""
        more: Any = True
        while more:
            yield (page := self.prices(market, limit=limit, **request))
            more = request["cursor"] = page.metadata.get("nextCursor")

    def calculate(self, formula: Optional[str] = None, *, timeout: Optional[float] = None,
                  **request: Any) -> Results[CalculationResult]:
        """What a contract pays: a formula over named inputs, or a short form such as average=code.
        revision, asOf and receipt are options. A date or a Decimal may stand for a text. Warnings
        of the answer reach warnings.warn. Raises PricesError."""
        options = {name: request.pop(name) for name in ("revision", "asOf", "receipt")
                   if name in request}
        body = {"options": options, **request, **({} if formula is None else {"formula": formula})}
        sent = json.dumps(body, default=str).encode()
        data, metadata, _ = self._page("/v3/calculations", timeout, "revision", body=sent,
                                       member="formula", rows=False)
        self._warn("calculations", metadata.get("warnings", []))
        return Results(data, metadata)

    def changes(self, *, after: Optional[str] = None, since: Any = None, wait: Optional[int] = None,
                market: Union[str, list[str], None] = None, limit: Optional[int] = None,
                timeout: Optional[float] = None, **only: Any) -> Changes:
        """The changes after a position or since an instant, oldest first, of `only` some codes or
        operations. It waits `wait` seconds for the first. Continue with after=page.next_seq."""
        query = {"since": since, "market": market, "limit": limit, "wait": wait, **only}
        data, got, headers = self._page("/v3/changes", timeout, "nextSeq", after=after, **query)
        self._warn("changes", got.get("warnings", []))
        return Changes(data, got, headers.get("x-data-revision"))

    def search(self, text: str, *, limit: Optional[int] = None,
               timeout: Optional[float] = None) -> Results[SearchResult]:
        """Prices of all readable markets that match a text, the best first."""
        return self._list("/v3/search", timeout, q=text, limit=limit)

    def markets(self, *, timeout: Optional[float] = None) -> Results[MarketSummary]:
        """All markets, with details of the readable ones."""
        return Results(*self._page("/v3/prices", timeout, member="slug")[:2])

    def filters(self, market: str, *,
                timeout: Optional[float] = None) -> dict[str, list[FilterValue]]:
        """The values that each filter of a market takes."""
        answer, _ = self._call(f"{_path(market)}/filters", None, timeout)
        with contextlib.suppress(LookupError, TypeError, AttributeError):
            if all(_are(values, "id", "name") for values in answer["data"].values()):
                return answer["data"]
        raise self._foreign(answer)

    def currencies(self, *, timeout: Optional[float] = None) -> Results[CurrencyEntry]:
        """The currencies of conversions, with the days that have rates."""
        return self._list("/v3/reference/currencies", timeout, member="iso")

    def units(self, *, timeout: Optional[float] = None) -> Results[UnitEntry]:
        """The units of conversions, with their exact factors."""
        return self._list("/v3/reference/units", timeout, member="symbol")

    def rates(self, base: str, quote: str, *, date_from: Any = None, date_to: Any = None,
              timeout: Optional[float] = None) -> Results[RateEntry]:
        """The exchange rates between two currencies, day by day."""
        query = {"base": base, "quote": quote, **_days(date_from, date_to)}
        return self._list("/v3/reference/rates", timeout, member="date", **query)

    def calendar(self, *, market: Union[str, list[str], None] = None,
                 codes: Union[str, list[str], None] = None, date_from: Any = None,
                 date_to: Any = None, timeout: Optional[float] = None) -> Results[DuePrice]:
        """The days on which prices are due, by default of the next two weeks."""
        query = {"market": market, "codes": codes, **_days(date_from, date_to)}
        return self._list("/v3/calendar", timeout, **query)

    def me(self, *, timeout: Optional[float] = None) -> Me:
        """The credential of the client: its scopes, markets, limits and expiry."""
        answer, _ = self._call("/v3/me", None, timeout)
        if _are([answer], "kind", "id") and isinstance(answer.get("scopes"), list):
            return answer
        raise self._foreign(answer)

    def _foreign(self, answer: Any) -> PricesError:
        start = self._hide(json.dumps(answer, default=str))[:200]
        return PricesError(f"{self._url} is no Commodity Prices Service of version 3, or its "
                           f"answer lacks a part: {start}")

    def _list(self, path: str, timeout: Optional[float], **query: Any) -> Results[Any]:
        return Results(*self._page(path, timeout, "revision", **query)[:2])

    def _page(self, path: str, timeout: Any, *texts: str, body: Any = None, member: str = "code",
              rows: bool = True, **query: Any) -> Any:
        """Records, which have a text as `member`, metadata, which have these texts, and headers."""
        sent = {name: _plain(value) if hasattr(value, "isoformat") else value
                for name, value in query.items() if value is not None}
        path += f"?{urllib.parse.urlencode(sent, doseq=True)}" if sent else ""
        answer, headers = self._call(path, body, timeout)
        if answer is None and texts == ("nextSeq",):  # 204
            answer = {"$metadata": {"nextSeq": headers.get("x-next-seq")}, "data": []}
        with contextlib.suppress(LookupError, TypeError, ValueError, ArithmeticError):
            data, metadata = answer["data"], answer.get("$metadata", {})
            if (_are(data, member) and _are([metadata], *texts)
                    and metadata.get("count", len(data)) == len(data)
                    and _are(metadata.get("warnings", []), "code", "detail")):
                # Raises if a price lacks what its rows need.
                list(Results(data, metadata, self._decimal)._points() if body and rows else ())
                return data, metadata, headers
        raise self._foreign(answer)

    def _call(self, path: str, body: Optional[bytes], timeout: Optional[float],
              media: Optional[str] = None) -> Any:
        """The response and its headers; a PriceFile for another media type than JSON. Retries are
        safe, because every call only reads."""
        if _KEY.search(urllib.parse.unquote(path)):
            raise PricesError("An argument holds a credential; give the API key as key")
        seconds = self._timeout if timeout is None else timeout
        if not 0 < seconds <= 2e6:  # A socket takes no timeout above 24 days.
            raise PricesError("timeout must be above 0 and at most 2,000,000 seconds")
        deadline = time.monotonic() + seconds
        for attempt in range(RETRIES + 1):
            try:
                return self._attempt(path, body, deadline, media)
            except _Transient as transient:
                error, after = transient.args
                wait = 0.5 * 2**attempt if after is None else after
                # Clients that were refused together do not return together.
                wait += random.random() * min(wait, 0.5)
                if attempt == RETRIES or time.monotonic() + wait >= deadline:
                    raise error from None
                time.sleep(wait)

    def _attempt(self, path: str, body: Optional[bytes], deadline: float,
                 media: Optional[str]) -> Any:
        headers = {"accept": media or "application/json, application/problem+json",
                   "accept-encoding": "gzip", "user-agent": "commodity-prices-python/1",
                   "content-type": "application/json"}
        if self._monotonic and self._url in _newest:
            headers["x-min-revision"] = _newest[self._url][1]
        request: Any = urllib.request.Request(self._url + path, body, headers)
        request.sockets, request.is_over = [], False
        left, done, made = max(0.01, deadline - time.monotonic()), list[Any](), list[Any]()

        def ask() -> None:
            try:
                secret = self._secret_now()
                name, scheme = ("authorization", "Bearer ") if self._is_token else ("x-api-key", "")
                request.add_header(name, scheme + secret)
                answer = self._opener.open(request, timeout=left + 1)
                kind = answer.headers.get("content-type", "").split(";")[0].strip().lower()
                if media and answer.status == 200 and kind == media.split(";")[0]:
                    self._remember(answer.headers)
                    made.append(answer)
                    done.append((answer, answer.headers))
                    return
                with answer:
                    done.append(self._read(answer, media))
            except (OSError, http.client.HTTPException) as error:
                reason = getattr(error, "reason", error)
                failed = PricesError(self._hide(f"The connection to {self._url} failed: {reason}"))
                is_final = isinstance(reason, ssl.SSLCertVerificationError)
                done.append(failed if is_final else _Transient(failed, None))
            except Exception as error:
                done.append(error)

        # A lookup has no timeout, and that of a socket restarts at each address and each byte.
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        is_file = False
        try:
            thread.join(left)
            if not done:
                raise PricesError(f"{self._url} did not answer in time")
            is_file = bool(made)
        finally:
            request.is_over = True
            if not is_file:
                _close(request.sockets)
        if isinstance(done[0], Exception):
            raise done[0]
        if is_file:
            return PriceFile(self._url, made[0], request.sockets, deadline), made[0].headers
        return done[0]

    def _remember(self, headers: Any) -> None:
        """Keeps the newest revision. Numbers of another history say nothing about age."""
        seen = re.fullmatch(r"[0-9a-z]+\.(\d{1,18})", headers.get("x-data-revision", ""))
        known = {} if "x-min-revision-unknown" in headers else _newest
        with _lock:
            if seen:
                _newest[self._url] = max(known.get(self._url, (-1, "")), (int(seen[1]), seen[0]))

    def _read(self, answer: Any, media: Optional[str] = None) -> Any:
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
        wanted = media or "application/json" if status == 200 else "application/problem+json"
        content = None
        with contextlib.suppress(ValueError, RecursionError):
            text = body if status == 200 else self._hide(body.decode())
            content = json.loads(text if kind == wanted else "", **_EXACT if self._decimal else {})
        if not media and (status == 204 or (status == 200 and content is not None)):
            return content, headers
        known: Any = content if _are([content], "code", "detail") else {}
        why = "that is broken or foreign" if kind == wanted else f"instead of {wanted}"
        detail = known.get("detail", f"{self._url} answered {status} with {kind} {why}: {start}")
        if status // 100 == 3 and (place := re.split("[?#]", headers.get("location", ""))[0]):
            detail = f"{self._url} answered {status}, a redirect: set the final address, {place}"
        if status == 404:
            detail += f" ({answer.url}; this client is for version 3 of the service)"
        members = map(known.get, ("code", "errors", "requestId"))
        error = PricesError(self._hide(detail), status, *members)
        after = _retry_after(headers.get("retry-after"))
        raise _Transient(error, after) if status in TRANSIENT else error


# The same with Client(), which takes address and credential from the environment.
def prices(market: str, **request: Any) -> Results[PriceRecord]:
    return Client().prices(market, **request)
def pages(market: str, **request: Any) -> Iterator[Results[PriceRecord]]:
    return Client().pages(market, **request)
def file(market: str, format: str, **request: Any) -> PriceFile:
    return Client().file(market, format, **request)
def calculate(formula: Optional[str] = None, **request: Any) -> Results[CalculationResult]:
    return Client().calculate(formula, **request)
def changes(**request: Any) -> Changes:
    return Client().changes(**request)
def search(text: str, **request: Any) -> Results[SearchResult]:
    return Client().search(text, **request)
def markets() -> Results[MarketSummary]:
    return Client().markets()
def filters(market: str) -> dict[str, list[FilterValue]]:
    return Client().filters(market)
def currencies() -> Results[CurrencyEntry]:
    return Client().currencies()
def units() -> Results[UnitEntry]:
    return Client().units()
def calendar(**request: Any) -> Results[DuePrice]:
    return Client().calendar(**request)
def rates(base: str, quote: str, **request: Any) -> Results[RateEntry]:
    return Client().rates(base, quote, **request)
def me() -> Me:
    return Client().me()
