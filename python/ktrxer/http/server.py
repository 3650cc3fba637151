# SPDX-License-Identifier: MIT OR Apache-2.0
"""A server of the responsiveness test: HTTP/2 over TLS, with a small object, a large one, an upload, and the configuration. The small
object and the configuration are also there by HTTP/1.1: some clients measure the idle round trip so.

The objects are below a path that contains a token, so that only clients with the token can make this server send. With `open` the server
also gives the configuration, and with it the token, to every client at /.well-known/nq. Connections are limited in number and time,
from their acceptance on; when there are too many, the network with most of them loses its oldest one."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote

import h2.events
import h2.exceptions

from ktrxer.http import nq
from ktrxer.http.two import Connection, secured

CONNECTIONS_MOST = 128
LIFE_S = 120.0  # of a connection
HANDSHAKE_S = 10.0  # of TLS
REQUESTS_MOST = 20_000  # of a connection
HEAD_BYTES_MOST = 1 << 13  # of a request by HTTP/1.1
HEADERS = {"content-type": "application/octet-stream", "cache-control": "no-store"}


@dataclass
class Site:
    """The objects that are served, and the counts of all connections."""

    base: str  # the URL of this host, without a path
    token: str
    open: bool = False
    doors: dict[Door, bytes] = field(default_factory=dict)  # the networks of all connections, in the order of their acceptance
    refused: int = 0
    requests: int = 0

    @property
    def root(self) -> str:
        return f"/{quote(self.token, safe='')}"

    def admit(self, door: Door, network: bytes) -> None:
        """The oldest connection of the network with most connections is closed."""
        if len(self.doors) >= CONNECTIONS_MOST:
            greedy = Counter(self.doors.values()).most_common(1)[0][0]
            self.refused += 1
            next(one for one, its in self.doors.items() if its == greedy).close()
        self.doors[door] = network

    def kind(self, path: str) -> str | None:
        """small, large, upload or nq; None: this client has no object at this path."""
        place = path.partition("?")[0]
        if self.open and place == nq.WELL_KNOWN:
            return "nq"
        before, _, name = place.rpartition("/")
        known = hmac.compare_digest(before.encode(), self.root.encode())
        return name if known and name in ("small", "large", "upload", "nq") else None

    def whole(self, kind: str) -> tuple[dict[str, str], bytes]:
        """The header fields and the body of an object that is sent at once."""
        if kind == "nq":
            return {"content-type": "application/json"}, nq.write(f"{self.base}{self.root}")
        return HEADERS, b"x" * nq.SMALL_BYTES


class Door(asyncio.Protocol):
    """A connection from its acceptance to its end. TLS begins when it has a place."""

    def __init__(self, site: Site, context: ssl.SSLContext) -> None:
        self.site, self.context = site, context
        self.transport: asyncio.Transport | None = None
        self.opening: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.pause_reading()
        self.site.admit(self, network_of(self.transport.get_extra_info("peername")))
        loop = asyncio.get_running_loop()
        self.timer = loop.call_later(LIFE_S, self.close)
        self.opening = loop.create_task(self._open())

    async def _open(self) -> None:
        assert self.transport is not None
        peer = Peer(self.site, self)
        with contextlib.suppress(OSError):  # ssl.SSLError is one, and so is the end of the patience
            secure = await secured(self.transport, peer, self.context, server_side=True, ssl_handshake_timeout=HANDSHAKE_S)
            if secure is not None and secure.get_extra_info("ssl_object").selected_alpn_protocol() == "h2":
                peer.connection_made(secure)
                return
            if secure is not None:  # without ALPN it is HTTP/1.1 (RFC 9113, section 3.2)
                single = Single(self.site, self)
                secure.set_protocol(single)
                single.connection_made(secure)
                single.data_received(peer.early)
                return
        self.site.refused += 1
        self.close()

    def connection_lost(self, _: Exception | None) -> None:
        self.leave()

    def close(self) -> None:
        self.leave()
        if self.transport is not None:
            self.transport.abort()

    def leave(self) -> None:
        self.site.doors.pop(self, None)
        if self.timer is not None:
            self.timer.cancel()


def network_of(peer: tuple[Any, ...] | None) -> bytes:
    """The /24 or /56 of an address."""
    try:
        return socket.inet_pton(socket.AF_INET6, peer[0].partition("%")[0])[:7] if ":" in peer[0] else socket.inet_aton(peer[0])[:3]  # type: ignore[index]
    except (TypeError, IndexError, OSError):  # it has ended meanwhile
        return b""


class Single(asyncio.Protocol):
    """One request by HTTP/1.1 (RFC 9112), for an object without load; then the connection ends."""

    def __init__(self, site: Site, door: Door) -> None:
        self.site, self.door = site, door
        self.transport: asyncio.Transport | None = None
        self.head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _: Exception | None) -> None:
        self.door.leave()

    def data_received(self, data: bytes) -> None:
        assert self.transport is not None
        if self.transport.is_closing():
            return
        self.head += data
        if b"\r\n\r\n" not in self.head and len(self.head) <= HEAD_BYTES_MOST:
            return
        self.site.requests += 1
        method, _, rest = self.head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        path, _, version = rest.rpartition(" ")
        kind = self.site.kind(path)
        more, body = {}, b""
        if len(self.head) > HEAD_BYTES_MOST or not version.startswith("HTTP/1."):
            status = "400 Bad Request"
        elif kind is None:
            status = "404 Not Found"
        elif kind in ("large", "upload"):
            status = "505 HTTP Version Not Supported"  # the load is HTTP/2
        elif method not in ("GET", "HEAD"):
            status, more = "405 Method Not Allowed", {"allow": "GET, HEAD"}
        else:
            status, (more, body) = "200 OK", self.site.whole(kind)
        fields = {"content-length": str(len(body)), "connection": "close", **more}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.transport.write(f"HTTP/1.1 {status}\r\n{head}\r\n".encode("latin-1") + (b"" if method == "HEAD" else body))
        self.transport.close()


class Peer(Connection):
    def __init__(self, site: Site, door: Door) -> None:
        super().__init__(client=False)
        self.site, self.door = site, door
        self.uploads: set[int] = set()
        self.requests = 0

    def ended(self) -> None:
        self.door.leave()
        self.sending.clear()

    def other(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            self._request(event.stream_id, {str(name): str(value) for name, value in event.headers}, event.stream_ended is not None)
        elif isinstance(event, h2.events.StreamEnded) and event.stream_id in self.uploads:
            self.uploads.discard(event.stream_id)
            self._answer(event.stream_id, 200, 0)

    def reset(self, stream: int, _: int) -> None:
        self.uploads.discard(stream)

    def _request(self, stream: int, headers: dict[str, str], whole: bool) -> None:
        self.requests += 1
        self.site.requests += 1
        if self.requests > REQUESTS_MOST:
            self.fail(ConnectionError("too many requests"))
            return
        method, kind = headers.get(":method"), self.site.kind(headers.get(":path", ""))
        if kind is None:
            self._answer(stream, 404, 0)
        elif kind == "upload":
            if method != "POST":
                self._answer(stream, 405, 0, {"allow": "POST"})
            elif whole:
                self._answer(stream, 200, 0)
            else:
                self.uploads.add(stream)
        elif method not in ("GET", "HEAD"):
            self._answer(stream, 405, 0, {"allow": "GET, HEAD"})
        elif kind == "large":
            self._answer(stream, 200, nq.LARGE_BYTES, HEADERS, follows=method == "GET")
        else:
            more, body = self.site.whole(kind)
            self._answer(stream, 200, len(body), more, body if method == "GET" else b"")

    def _answer(
        self, stream: int, status: int, size: int, more: dict[str, str] | None = None, body: bytes = b"", follows: bool = False
    ) -> None:
        """`follows`: the answer has a body of `size` zeros."""
        fields = [(":status", str(status)), ("content-length", str(size)), *(more or {}).items()]
        with contextlib.suppress(h2.exceptions.ProtocolError):  # the client has reset the stream meanwhile
            self.h2.send_headers(stream, fields, end_stream=not body and not follows)
            if body:
                self.h2.send_data(stream, body, end_stream=True)
            elif follows:
                self.sending[stream] = size


def context_of(certificate: str, key: str) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.load_cert_chain(certificate, key)
    made.set_alpn_protocols(["h2", "http/1.1"])
    return made


async def serve(site: Site, context: ssl.SSLContext, bind: str | None, port: int, ready: Callable[[int], None]) -> None:
    """Serves until it is cancelled. `ready` gets the port, once connections are accepted."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_failed)
    server = await loop.create_server(lambda: Door(site, context), bind, port, backlog=CONNECTIONS_MOST)
    try:
        ready(server.sockets[0].getsockname()[1])
        await loop.create_future()
    finally:  # serve_forever() would wait for the clients to end
        server.close()
        for door in list(site.doors):
            door.close()


def _failed(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A client that breaks its connection is no error of this program."""
    if not isinstance(context.get("exception"), OSError):
        loop.default_exception_handler(context)
