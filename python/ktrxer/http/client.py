# SPDX-License-Identifier: MIT OR Apache-2.0
"""The client's side of a connection of the responsiveness test: its two handshakes, requests, and one transfer that loads."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import h2.events

from ktrxer.http import nq
from ktrxer.http.two import Connection, secured
from ktrxer.statistics.rpm import tls_round_trips

WAIT_S = 5.0  # for a connection, a handshake, an answer: then a probe is lost, and a connection has failed
UPLOAD_BYTES = 100 * 10**6  # of one body: larger ones are refused by many servers; the next begins when the last one has been sent
NO_HTTP_2 = "the server has no HTTP/2 (ALPN); the responsiveness test needs it"


class NqError(Exception):
    """One line: what failed, on what, why, what to do."""


class Unprocessed(ConnectionError):
    """The server has sent GOAWAY, and has not processed the request."""

    def __init__(self) -> None:
        super().__init__("the server takes no more requests on this connection (GOAWAY; nginx: keepalive_requests)")


@dataclass(frozen=True)
class Target:
    scheme: str
    host: str  # of the URLs
    port: int
    connect: str  # host to connect to

    @property
    def authority(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == 443 else f"{name}:{self.port}"


def target_of(url: str, endpoint: str = "") -> Target:
    try:
        parts = urlsplit(url)
        port = parts.port or 443
    except ValueError as error:
        raise NqError(f"not an URL of a server: {error}") from None
    if parts.scheme != "https" or not parts.hostname:
        raise NqError(f"{(parts.hostname or '')[:200]}: the responsiveness test needs https://HOST[:PORT]")
    return Target(parts.scheme, parts.hostname, port, endpoint or parts.hostname)


def path_of(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


@dataclass
class Answer:
    status: int
    location: str = ""
    body: bytes = b""


def refused(status: int, way: str) -> str:
    """Why a load does not work; empty if it does."""
    if status == 200 or (way == "up" and 200 <= status < 300):
        return ""
    what = f"the server answers the {way}load with status {status}"
    if way == "up" and status == 413:
        return f"{what}: it takes no body of {UPLOAD_BYTES // 10**6} MB (nginx: client_max_body_size)"
    if way == "up" and status in (403, 404, 405, 411, 501):
        return f"{what}: it takes no uploads at the URL of its configuration"
    if 300 <= status < 400:
        return f"{what}: it redirects, and this client follows no redirection"
    return what


class Client(Connection):
    """The client's side of a connection: requests, and one transfer that loads."""

    def __init__(self, target: Target) -> None:
        super().__init__(client=True)
        self.target = target
        self.waiting: dict[int, asyncio.Future[Answer]] = {}
        self.answers: dict[int, Answer] = {}
        self.received = 0  # bytes of the body of the load
        self.loading: set[int] = set()
        self.way, self.path = "down", ""  # of the load
        self.leaving = False  # after GOAWAY: the requests that the server has accepted go on
        self.on_leave: Callable[[], None] | None = None

    def send(self, method: str, path: str, body: int = 0) -> int:
        stream: int = self.h2.get_next_available_stream_id()
        fields = [(":method", method), (":scheme", self.target.scheme), (":authority", self.target.authority), (":path", path)]
        more = [("content-type", "application/octet-stream"), ("content-length", str(body))] if body else []
        self.h2.send_headers(stream, [*fields, ("accept-encoding", "identity"), ("user-agent", "ktrxer"), *more], end_stream=not body)
        if body:
            self.sending[stream] = body
        return stream

    def requested(self, method: str, path: str, body: int = 0) -> asyncio.Future[Answer]:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        if self.closed or self.lost is not None:
            future.set_exception(ConnectionError(str(self.lost or "the connection is closed")))
            return future
        if self.leaving:
            future.set_exception(Unprocessed())
            return future
        self.waiting[self.send(method, path, body)] = future
        self.pump()
        return future

    def load(self, way: str, path: str) -> None:
        """The object again and again, or one body after the other."""
        self.way, self.path = way, path
        self._next()
        self.pump()

    def _next(self) -> None:
        if self.path and self.lost is None and not self.leaving:
            self.loading.add(self.send("GET", self.path) if self.way == "down" else self.send("POST", self.path, UPLOAD_BYTES))

    def data(self, stream: int, count: int, piece: bytes) -> None:
        if stream in self.loading:
            self.received += count
        elif stream in self.waiting:
            answer = self.answers[stream]
            answer.body = (answer.body + piece)[: nq.MOST_BYTES + 1]
            if len(answer.body) > nq.MOST_BYTES:
                self._whole(stream)

    def sent(self, stream: int) -> None:
        if stream in self.loading:
            self._next()

    def other(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.ResponseReceived):
            fields = {str(name): str(value) for name, value in event.headers}
            status = fields[":status"]
            answer = Answer(int(status) if status.isdecimal() else 0, fields.get("location", ""))
            stream = event.stream_id
            if stream in self.loading:
                if wrong := refused(answer.status, self.way):
                    self.fail(ConnectionError(wrong))
                elif stream in self.sending:
                    self.fail(ConnectionError("the server answers an upload before its end: it does not take the body"))
            elif stream in self.waiting:
                self.answers[stream] = answer
                if answer.status != 200:
                    self._whole(stream)
        elif isinstance(event, h2.events.StreamEnded):
            stream = event.stream_id
            self._whole(stream)
            if stream in self.loading:
                self.loading.discard(stream)
                if not self.loading:
                    self._next()

    def _whole(self, stream: int) -> None:
        answer, future = self.answers.pop(stream, Answer(0)), self.waiting.pop(stream, None)
        self.sending.pop(stream, None)
        if future is not None and not future.done():
            future.set_result(answer)

    def reset(self, stream: int, code: int) -> None:
        future = self.waiting.pop(stream, None)
        if future is not None and not future.done():
            future.set_exception(ConnectionError(f"the server reset the request (HTTP/2 error {code})"))
        if stream in self.loading:
            self.fail(ConnectionError(f"the server reset the load (HTTP/2 error {code})"))

    def leave(self, last: int) -> None:
        """A server may send GOAWAY twice: without a limit, and a round trip later with its last stream."""
        for stream in [one for one in self.waiting if one > last]:
            future = self.waiting.pop(stream)
            if not future.done():
                future.set_exception(Unprocessed())
        self.loading = {one for one in self.loading if one <= last}
        self.sending = {one: left for one, left in self.sending.items() if one <= last}
        if not self.leaving:
            self.leaving = True
            if self.on_leave is not None:
                self.on_leave()

    def ended(self) -> None:
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(ConnectionError(str(self.lost or "the server closed the connection")))
                future.exception()  # read here: its task may have been cancelled
        self.waiting.clear()


@dataclass
class Opened:
    client: Client
    tcp_ms: float
    tls_ms: float  # of one round trip


async def connected(target: Target, address: tuple[int, Any], context: ssl.SSLContext) -> Opened:
    """A new connection, with the times of its two handshakes."""
    loop = asyncio.get_running_loop()
    sock = socket.socket(address[0], socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        begun = time.monotonic_ns()
        await asyncio.wait_for(loop.sock_connect(sock, address[1]), WAIT_S)
        there = time.monotonic_ns()
        raw, _ = await loop.create_connection(asyncio.Protocol, sock=sock)
        client = Client(target)
        transport = await secured(raw, client, context, server_hostname=target.host, ssl_handshake_timeout=WAIT_S)
        done = time.monotonic_ns()
    except BaseException:
        sock.close()
        raise
    if transport is None:
        raise ConnectionError("the server closed the connection in the TLS handshake")
    secure = transport.get_extra_info("ssl_object")
    if secure.selected_alpn_protocol() != "h2":
        transport.abort()
        raise NqError(f"{target.authority}: {NO_HTTP_2}")
    client.connection_made(transport)
    return Opened(client, (there - begun) / 1e6, (done - there) / 1e6 / tls_round_trips(secure.version() or ""))


def text_of(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}); --ca-file names another authority"
    if isinstance(error, ssl.SSLError) and "no application protocol" in str(error):
        return NO_HTTP_2
    if isinstance(error, TimeoutError):
        return f"no answer within {WAIT_S:g} s"
    if isinstance(error, ConnectionRefusedError):
        return "Connection refused"  # asyncio's text has the address alone
    return str(getattr(error, "strerror", None) or error) or type(error).__name__
