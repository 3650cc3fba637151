# SPDX-License-Identifier: MIT OR Apache-2.0
"""Load by HTTP/1.1: several connections download one object again and again, or upload bodies, for a given time.

This file uses nothing but the standard library and is run by its path (runners/http_load.py). It prints the objects of `ktrxer flow`:
samples of bytes, and one `end` object (docs/schema/). Downloaded bytes are those of the bodies. Uploaded bytes are those that the far
kernel has acknowledged (TCP_INFO, with TLS and HTTP headers): the far end had received so many bytes within the last round trip."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import signal
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

from ktrxer.arguments import host_fault
from ktrxer.store.reasons import as_json, reason

S = 10**9
BUFFER = 1 << 18
LEAST_BYTES = 1_000_000  # of an object: smaller ones are error pages, and load nothing
POST_BYTES = 32 << 20  # of each uploaded body
HEAD_MOST = 1 << 16
WAIT_S = 5.0  # for a connection, a handshake, and between two pieces of data
DNS_S = 8.0
REDIRECTS_MOST = 3
UNSENT_BYTES = 1 << 17  # TCP_NOTSENT_LOWAT: limit of the unsent data in this host's socket
TCP_NOTSENT_LOWAT = 25
RTT_AT, ACKED_AT = 68, 120  # of tcpi_rtt (32 bits, microseconds) and tcpi_bytes_acked (64 bits) in struct tcp_info
PORTAL = "a captive portal of the local network answers like that: open a page in a browser, log in, and try again"


class LoadError(Exception):
    """One line: what failed, on what, why, what to do."""


def emit(made: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(made, separators=(",", ":")) + "\n")
    sys.stdout.flush()


@dataclass(frozen=True)
class Place:
    """An URL, and the address of its host."""

    url: str
    secure: bool
    host: str
    port: int
    path: str
    address: tuple[int, tuple[object, ...]]  # family, socket address


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    rest: bytes  # of the body, as far as it came with the head


@dataclass
class Flow:
    """Counted by its thread, read by the main thread."""

    number: int
    bytes: int = 0
    rtt_ns: int = 0
    sock: socket.socket | None = None
    before: int = 0  # acknowledged on earlier connections
    error: str = ""
    failures: list[str] = field(default_factory=list)


# ------------------------------------------------------------------------------------------------------------- before the load


def place_of(url: str, family: int = 0) -> Place:
    """The host's address is looked up once, before the load: a slow DNS server is not part of a flow."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise LoadError(f"{url[:200]}: not an URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isprintable() or " " in url:
        raise LoadError(f"{url[:200]}: not an URL of a server: give http://HOST/PATH or https://HOST/PATH")
    found: list[tuple[int, tuple[object, ...]]] = []
    failed: list[Exception] = []

    def look() -> None:
        try:
            found.extend((one[0], one[4]) for one in socket.getaddrinfo(parts.hostname, port, family, socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            failed.append(error)

    thread = threading.Thread(target=look, daemon=True)  # getaddrinfo has no time limit of its own
    thread.start()
    thread.join(DNS_S)
    if thread.is_alive():
        remedy = "check /etc/resolv.conf, or name the server by its address"
        raise LoadError(f"{parts.hostname}: no answer of the DNS within {DNS_S:g} s; {remedy}")
    if not found:
        raise LoadError(host_fault(parts.hostname, failed[0] if failed else None))
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Place(url, parts.scheme == "https", parts.hostname, port, path, found[0])


def context_of(ca_file: str | None) -> ssl.SSLContext:
    try:
        made = ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise LoadError(f"{ca_file}: not a file of certificates: {error}") from None
    made.set_alpn_protocols(["http/1.1"])
    return made


def connect(place: Place, context: ssl.SSLContext | None) -> socket.socket:
    family, address = place.address
    what = f"{place.host} port {place.port}"
    raw = socket.socket(family, socket.SOCK_STREAM)
    try:
        raw.settimeout(WAIT_S)
        raw.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        raw.connect(address)
        if not place.secure or context is None:
            return raw
        return context.wrap_socket(raw, server_hostname=place.host)
    except ssl.SSLCertVerificationError as error:
        raw.close()
        remedy = f"--ca-file names another authority, or {PORTAL}"
        raise LoadError(f"{what}: its certificate is not trusted ({error.verify_message}); {remedy}") from None
    except TimeoutError:
        raw.close()
        raise LoadError(f"{what}: no connection within {WAIT_S:g} s; is the server running, and does a firewall allow the port?") from None
    except (OSError, ssl.SSLError) as error:
        raw.close()
        raise LoadError(f"{what}: no connection: {error.strerror or error}") from None


def request(place: Place, method: str, more: str = "") -> bytes:
    host = f"[{place.host}]" if ":" in place.host else place.host
    port = "" if place.port == (443 if place.secure else 80) else f":{place.port}"
    always = "User-Agent: ktrxer\r\nAccept: */*\r\nAccept-Encoding: identity\r\n"
    head = f"{method} {place.path} HTTP/1.1\r\nHost: {host}{port}\r\n{always}{more}\r\n"
    try:
        return head.encode("ascii")
    except UnicodeEncodeError:
        raise LoadError(f"{place.url[:200]}: an URL has ASCII characters only; encode the others by %") from None


def early(sock: socket.socket) -> bytes:
    """The bytes that the server has sent while this host still sends; empty if the server sent TLS session tickets only."""
    if not select.select([sock], [], [], 0)[0]:
        return b""
    sock.setblocking(False)
    try:
        return sock.recv(HEAD_MOST)
    except (BlockingIOError, ssl.SSLWantReadError):
        return b""
    finally:
        sock.settimeout(WAIT_S)


def recv_until(sock: socket.socket, most: int, end: float) -> bytes:
    """`end`: on the monotonic clock, in seconds; after it, TimeoutError."""
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    sock.settimeout(left)
    try:
        return sock.recv(most)
    finally:
        sock.settimeout(WAIT_S)


def reply_of(sock: socket.socket, place: Place, data: bytes = b"") -> Reply:
    """The head of a reply, and the part of the body that came with it. `data`: the bytes that came before.

    The limit of time is that of the whole head, because a server may send one byte at a time."""
    end = time.monotonic() + WAIT_S
    while b"\r\n\r\n" not in data:
        if len(data) > HEAD_MOST:
            raise LoadError(f"{place.url[:200]}: the head of the reply is longer than {HEAD_MOST} bytes")
        try:
            piece = recv_until(sock, HEAD_MOST, end)
        except TimeoutError:
            raise LoadError(f"{place.url[:200]}: the server stalled: no complete reply within {WAIT_S:g} s") from None
        except (OSError, ssl.SSLError) as error:
            raise LoadError(f"{place.url[:200]}: the connection failed before the reply: {error.strerror or error}") from None
        if not piece:
            raise LoadError(f"{place.url[:200]}: the server closed the connection before its reply was complete")
        data += piece
    head, rest = data.split(b"\r\n\r\n", 1)
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
        raise LoadError(f"{place.url[:200]}: the reply is not HTTP/1.1: {first[:60]!r}")
    pairs = (line.partition(":") for line in lines)
    return Reply(int(words[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}, rest)


def refused(place: Place, reply: Reply, up: bool) -> str:
    """The meaning of a status other than success, and the remedy."""
    code, what = reply.status, f"{place.url[:200]}: the server answers with status {reply.status}"
    if code == 511:
        return f"{what}: {PORTAL}"
    if code in (401, 403, 407):
        return f"{what}: it refuses this {'upload' if up else 'download'}; name an URL that needs no login"
    if code in (429, 503):
        wait = reply.headers.get("retry-after", "")
        pause = f" (Retry-After: {wait[:40]})" if wait else ""
        return f"{what}{pause}: it is busy or limits requests; try later, or name another server"
    if up and code in (404, 405, 411, 413, 501):
        return f"{what}: it takes no upload there; name an URL that takes POST requests of {POST_BYTES >> 20} MiB"
    if code in (404, 410):
        return f"{what}: there is no such object; name another URL"
    return f"{what}; name another URL"


def final_place(url: str, context: ssl.SSLContext | None, family: int) -> Place:
    """Follows redirections of a download within the same host, because the user has not named another host."""
    for _ in range(REDIRECTS_MOST + 1):
        place = place_of(url, family)
        with contextlib.closing(connect(place, context)) as sock:
            sock.sendall(request(place, "GET", "Connection: close\r\n"))
            reply = reply_of(sock, place)
            if reply.status not in (301, 302, 303, 307, 308):
                check_object(place, reply, sock)
                return place
        to = urljoin(url, reply.headers.get("location", ""))
        if urlsplit(to).hostname != place.host:
            portal = "" if place.secure else f", or {PORTAL}"
            remedy = f"name that URL if you want to load that host{portal}"
            raise LoadError(f"{url[:200]}: it is redirected to another host, {to[:200]}: {remedy}")
        url = to
    raise LoadError(f"{url[:200]}: more than {REDIRECTS_MOST} redirections; name the URL at their end")


def check_object(place: Place, reply: Reply, sock: socket.socket) -> None:
    if reply.status != 200:
        raise LoadError(refused(place, reply, up=False))
    length = reply.headers.get("content-length", "")
    size = int(length) if length.isdigit() else None
    kind = reply.headers.get("content-type", "").partition(";")[0]
    if size is not None and size < LEAST_BYTES:
        portal = f"; {PORTAL}" if kind == "text/html" else ""
        found = f"the object has {size} bytes ({kind[:40] or 'no type'})"
        raise LoadError(f"{place.url[:200]}: {found}; a load needs one of {LEAST_BYTES} bytes at least{portal}")
    got = len(reply.rest)
    while got == 0:
        try:
            piece = sock.recv(BUFFER)
        except TimeoutError:
            raise LoadError(f"{place.url[:200]}: the server stalled: it sent no data within {WAIT_S:g} s") from None
        if not piece:
            raise LoadError(f"{place.url[:200]}: the server closed the connection without data")
        got += len(piece)


def check_upload(place: Place, context: ssl.SSLContext | None) -> int:
    """A small body is accepted, or refused before the load."""
    body = bytes(1000)
    with contextlib.closing(connect(place, context)) as sock:
        more = f"Connection: close\r\nContent-Type: application/octet-stream\r\nContent-Length: {len(body)}\r\n"
        sock.sendall(request(place, "POST", more) + body)
        reply = reply_of(sock, place)
    if 300 <= reply.status < 400:
        to = reply.headers.get("location", "?")[:200]
        raise LoadError(f"{place.url[:200]}: the upload is redirected to {to}: name that URL, or {PORTAL}")
    if not 200 <= reply.status < 300:
        raise LoadError(refused(place, reply, up=True))
    return len(body)


# ------------------------------------------------------------------------------------------------------------------ the load


class Load:
    def __init__(self, place: Place, context: ssl.SSLContext | None, up: bool, count: int) -> None:
        self.place, self.context, self.up = place, context, up
        self.flows = [Flow(number) for number in range(count)]
        self.stop = threading.Event()

    def start(self) -> None:
        for flow in self.flows:
            threading.Thread(target=self._run, args=(flow,), daemon=True).start()

    def _run(self, flow: Flow) -> None:
        """An object that has ended is requested again. A flow whose connection fails makes one more, once a second."""
        while not self.stop.is_set():
            try:
                with contextlib.closing(connect(self.place, self.context)) as sock:
                    flow.sock = sock
                    (self._upload if self.up else self._download)(flow, sock)
            except (LoadError, OSError, ssl.SSLError) as error:
                flow.error = str(error)
                if not self.stop.is_set():
                    flow.failures.append(flow.error)
            finally:
                if self.up and flow.sock is not None:
                    flow.bytes = max(flow.bytes, flow.before)
                    flow.before = flow.bytes
                flow.sock = None
            if flow.error and self.stop.wait(1.0):
                return
            flow.error = ""

    def _download(self, flow: Flow, sock: socket.socket) -> None:
        buffer = bytearray(BUFFER)
        sock.sendall(request(self.place, "GET", "Connection: close\r\n"))
        reply = reply_of(sock, self.place)
        if reply.status != 200:
            raise LoadError(refused(self.place, reply, up=False))
        before = flow.bytes
        flow.bytes += len(reply.rest)
        while not self.stop.is_set():
            try:
                count = sock.recv_into(buffer)
            except TimeoutError:
                raise LoadError(f"{self.place.url[:200]}: the server stalled: no data for {WAIT_S:g} s") from None
            if not count:
                if flow.bytes - before < LEAST_BYTES:
                    raise LoadError(f"{self.place.url[:200]}: the server closed the connection after {flow.bytes - before} bytes")
                return
            flow.bytes += count

    def _upload(self, _: Flow, sock: socket.socket) -> None:
        """Bodies one after the other on one connection. A reply before the end of a body is a refusal."""
        piece = os.urandom(BUFFER)  # no device can compress it
        more = f"Content-Type: application/octet-stream\r\nContent-Length: {POST_BYTES}\r\n"
        while not self.stop.is_set():
            sock.sendall(request(self.place, "POST", more))
            left, came = POST_BYTES, b""
            while left and not came and not self.stop.is_set():
                try:
                    left -= sock.send(piece[: min(left, BUFFER)])
                except TimeoutError:
                    raise LoadError(f"{self.place.url[:200]}: the server stalled: it took no data for {WAIT_S:g} s") from None
                except OSError:  # closed by the server: its reply may have come before
                    came = early(sock)
                    if not came:
                        raise
                    break
                came = early(sock)
            if self.stop.is_set():
                return
            reply = reply_of(sock, self.place, came)
            if left or not 200 <= reply.status < 300:
                raise LoadError(refused(self.place, reply, up=True))
            if reply.headers.get("connection", "").lower() == "close":
                return
            length = reply.headers.get("content-length", "0")
            waiting = (int(length) if length.isdigit() else 0) - len(reply.rest)
            end = time.monotonic() + WAIT_S
            try:
                while waiting > 0 and (data := recv_until(sock, min(waiting, BUFFER), end)):
                    waiting -= len(data)
            except TimeoutError:
                raise LoadError(f"{self.place.url[:200]}: the server stalled: no complete reply within {WAIT_S:g} s") from None

    def look(self, flow: Flow) -> None:
        """The acknowledged bytes and the round trip of an upload's connection."""
        sock = flow.sock
        if not self.up or sock is None:
            return
        with contextlib.suppress(OSError, struct.error, ValueError):
            info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
            (rtt_us,), (acked,) = struct.unpack_from("=I", info, RTT_AT), struct.unpack_from("=Q", info, ACKED_AT)
            flow.bytes, flow.rtt_ns = max(flow.bytes, flow.before + acked), rtt_us * 1000

    def samples(self) -> Iterator[dict[str, object]]:
        for flow in self.flows:
            self.look(flow)
            far: dict[str, object] = {"end": "remote", "bound_ns": flow.rtt_ns} if self.up else {"end": "local"}
            yield {"type": "sample", "kind": "bytes", "flow": flow.number, "time_ns": time.monotonic_ns(), "bytes": flow.bytes} | far


def end_of(load: Load, stopped: bool) -> dict[str, object]:
    reasons = []
    for flow in load.flows:
        if flow.failures:
            again = f" ({len(flow.failures)} times)" if len(flow.failures) > 1 else ""
            reasons.append(reason("connection_failed", number=flow.number + 1, again=again, error=str(flow.failures[0])))
    moved = sum(flow.bytes for flow in load.flows)
    if not moved:
        reasons.append(reason("no_byte", url=load.place.url[:200]))
    if stopped:
        reasons.append(reason("load_stopped"))
    verdict = "invalid" if not moved else "degraded" if reasons else "valid"
    end = {"type": "end", "end_ns": time.monotonic_ns(), "verdict": verdict, "reasons": as_json(reasons)}
    return end | {"bytes": moved, "url": load.place.url}


def stopping(on_eof: bool) -> threading.Event:
    """It is set by a signal, and at the end of standard input if that is wanted."""
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    if on_eof:

        def watch() -> None:
            while os.read(0, 4096):
                pass
            stopped.set()

        threading.Thread(target=watch, daemon=True).start()
    return stopped


def measure(load: Load, start_ns: int, length_ns: int, interval_ns: int, stop_on_eof: bool) -> bool:
    """True if the load was stopped before its end."""
    stopped = stopping(stop_on_eof)
    stopped.wait(max(0, start_ns - time.monotonic_ns()) / S)
    if stopped.is_set():
        return True
    load.start()
    due = start_ns
    while not stopped.is_set():
        for sample in load.samples():
            emit(sample)
        if due >= start_ns + length_ns:
            break
        due = min(due + interval_ns, start_ns + length_ns)
        stopped.wait(max(0, due - time.monotonic_ns()) / S)
    load.stop.set()
    return stopped.is_set()


def ns(text: str) -> int:
    return int(text.removesuffix("ns"))


def parser(about: str | None, length_s: int) -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(description=about)
    p.add_argument("direction", choices=("up", "down"))
    p.add_argument("url")
    p.add_argument("--sample-interval", type=ns, default=S // 5)
    p.add_argument("--for", dest="length", type=ns, default=length_s * S)
    p.add_argument("--start-at", type=int, help="CLOCK_REALTIME in nanoseconds")
    p.add_argument("--ca-file")
    p.add_argument("--trial", action="store_true", help="one request, and its result as JSON")
    p.add_argument("--jsonl", action="store_true")
    p.add_argument("--stop-on-eof", action="store_true")
    p.add_argument("-4", dest="family", action="store_const", const=socket.AF_INET, default=0)
    p.add_argument("-6", dest="family", action="store_const", const=socket.AF_INET6)
    return p


def main() -> int:
    p = parser(__doc__, 10)
    p.add_argument("--flows", type=int, default=4)
    given = p.parse_args()
    up = given.direction == "up"
    real_minus_mono = time.time_ns() - time.monotonic_ns()
    if not given.trial:
        emit({"type": "start", "schema": 1, "command": "http_load", "clock": {"mono_ns": time.monotonic_ns(), "real_ns": time.time_ns()}})
    try:
        context = context_of(given.ca_file) if given.url.startswith("https:") else None
        if given.trial:
            count = check_upload(place_of(given.url, given.family), context) if up else 0
            place = place_of(given.url, given.family) if up else final_place(given.url, context, given.family)
            emit({"type": "end", "end_ns": time.monotonic_ns(), "verdict": "valid", "reasons": [], "bytes": count or 1, "url": place.url})
            return 0
        place = place_of(given.url, given.family) if up else final_place(given.url, context, given.family)
    except (LoadError, OSError) as error:
        why = as_json([reason("http_failed", error=str(error))])
        emit({"type": "end", "end_ns": time.monotonic_ns(), "verdict": "invalid", "reasons": why, "bytes": 0, "url": given.url})
        return 1
    load = Load(place, context, up, given.flows)
    start = given.start_at - real_minus_mono if given.start_at is not None else time.monotonic_ns()
    end = end_of(load, measure(load, start, given.length, given.sample_interval, given.stop_on_eof))
    emit(end)
    return 0 if end["verdict"] == "valid" else 1


if __name__ == "__main__":
    sys.exit(main())
