# SPDX-License-Identifier: MIT OR Apache-2.0
"""HTTP on the loopback address for one user. Any program of this machine, and any page in the user's browser, can send requests here, so
each one is checked:

- The Host header must be this server's address: a name of another site that resolves to 127.0.0.1 (DNS rebinding) is refused.
- An Origin header must be this server's origin, and Sec-Fetch-Site must not name another site.
- Each request for data is a POST of JSON with the token in a header of its own. A page of another site cannot set that header without a
  preflight request, which is refused. The token stands behind the # of the address, which a browser never sends.

The page itself has no data. It is served without the token, and its policy allows only its own script."""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import select
import socket
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ktrxer.explore.answers import ROUTES, Answers, Refused
from ktrxer.explore.library import Unknown

LOOPBACK = "127.0.0.1"
TOKEN_BYTES = 24
TOKEN_HEADER = "X-Ktrxer-Token"
MOST_BODY = 4 << 20
IDLE_S = 60  # a connection without a request is closed
MOST_CONNECTIONS = 64  # each has a thread
WAIT_S = 20  # the longest answer to `changes`
POLL_S = 0.5
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS  # a full queue drops a SYN, and the browser sends it again after a second

    def __init__(self, port: int, answers: Answers, page: bytes) -> None:
        """OSError: the port is in use, or needs a privilege."""
        super().__init__((LOOPBACK, port), _Handler)
        self.answers = answers
        self.page = page
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self.hosts = {f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost")}
        if self.server_port == 80:
            self.hosts |= {LOOPBACK, "localhost"}
        self.closing = threading.Event()
        self._connections: dict[socket.socket, bool] = {}  # the oldest first; whether its client has shown the token
        self._lock = threading.Lock()

    def server_bind(self) -> None:  # without the look-up of this host's name, which may wait for a name server
        socket.socket.bind(self.socket, self.server_address)
        self.server_name, self.server_port = LOOPBACK, self.socket.getsockname()[1]

    def address(self, view: str = "") -> str:
        return f"http://{LOOPBACK}:{self.server_port}/#token={self.token}{'&' if view else ''}{view}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Any user of this machine can connect. When there are too many connections, the oldest one without the token is closed."""
        with self._lock:
            self._connections[request] = False
            if len(self._connections) > MOST_CONNECTIONS:
                victim = next(one for one, proven in self._connections.items() if not proven)
                del self._connections[victim]
                with contextlib.suppress(OSError):
                    victim.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def proven(self, request: socket.socket) -> None:
        with self._lock:
            if request in self._connections:
                self._connections[request] = True

    def shutdown(self) -> None:
        self.closing.set()
        super().shutdown()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that closes a connection is no error."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "ktrxer"
    sys_version = ""
    timeout = IDLE_S

    def do_GET(self) -> None:
        if not self._here():
            return
        if self.path.partition("?")[0] != "/":
            self._fail(HTTPStatus.NOT_FOUND, "there is only the page /")
            return
        self._send(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8")

    def do_POST(self) -> None:
        if not self._here() or not self._allowed():
            return
        request = self._body()
        if request is None:
            return
        name = self.path.removeprefix("/api/")
        try:
            if self.path == "/api/changes":
                self._send_json(HTTPStatus.OK, {"version": self._changes(request)})
            elif self.path.startswith("/api/") and name in ROUTES:
                self._answer(ROUTES[name](self.server.answers, request))
            else:
                self._fail(HTTPStatus.NOT_FOUND, f"{self.path[:60]}: there is no such request")
        except (Refused, Unknown) as error:
            self._send_json(HTTPStatus.UNPROCESSABLE_ENTITY, {"error": str(error), "columns": getattr(error, "columns", [])})
        except MemoryError:
            self._send_json(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "the answer does not fit into this machine's memory"})
        except (ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception as error:
            text = f"{type(error).__name__}: {error}; this is a defect of ktrxer, please report it with the run"
            self._send_json(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": text[:1000]})

    def do_OPTIONS(self) -> None:
        self._fail(HTTPStatus.FORBIDDEN, "no other site may call the explorer")

    # -------------------------------------------------------------------------------------------------------------- checks

    def _here(self) -> bool:
        """The request is for this server, and from its own page."""
        host = self.headers.get_all("Host") or []
        origins = self.headers.get_all("Origin") or []
        foreign = any(not one.startswith("http://") or one.removeprefix("http://") not in self.server.hosts for one in origins)
        foreign |= self.command == "POST" and self.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none")
        if len(host) != 1 or host[0] not in self.server.hosts:
            self._fail(HTTPStatus.MISDIRECTED_REQUEST, "the Host header is not this server's address")
        elif foreign:
            self._fail(HTTPStatus.FORBIDDEN, "a page of another site may not call the explorer")
        else:
            return True
        return False

    def _allowed(self) -> bool:
        token = self.headers.get(TOKEN_HEADER, "")
        if hmac.compare_digest(token.encode("latin-1", "replace"), self.server.token.encode("ascii")):
            self.server.proven(self.connection)
            return True
        self._fail(HTTPStatus.FORBIDDEN, "the token is not that of this explorer: open the address that `ktrxer view` has printed")
        return False

    def _body(self) -> dict[str, Any] | None:
        if self.headers.get_content_type() != "application/json" or "Transfer-Encoding" in self.headers:
            self._fail(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected a body of application/json")
            return None
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or len(length) > 9 or int(length) > MOST_BODY:
            self._fail(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"expected a body of at most {MOST_BODY} bytes")
            return None
        try:
            request = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            request = None
        if not isinstance(request, dict):
            self._fail(HTTPStatus.BAD_REQUEST, "the body is not a JSON object")
            return None
        return request

    # ------------------------------------------------------------------------------------------------------------- answers

    def _changes(self, request: dict[str, Any]) -> str:
        """The version of the directory, as soon as it differs from `since`, or after WAIT_S. ConnectionError: the page was closed."""
        version = ""
        for _ in range(round(WAIT_S / POLL_S)):
            version = self.server.answers.library.watched(POLL_S * 0.9)
            if version != request.get("since") or self.server.closing.wait(POLL_S):
                break
            if select.select([self.connection], [], [], 0)[0] and not self.connection.recv(1, socket.MSG_PEEK):
                raise ConnectionResetError
        return version

    def _answer(self, made: Any) -> None:
        if isinstance(made, bytes):
            self._send(HTTPStatus.OK, made, "application/octet-stream")
        elif isinstance(made, tuple):
            data, kind, name = made
            self._send(HTTPStatus.OK, data, kind, {"Content-Disposition": f'attachment; filename="{_plain(name)}"'})
        else:
            self._send_json(HTTPStatus.OK, made)

    def _send_json(self, status: HTTPStatus, value: dict[str, Any]) -> None:
        self._send(status, json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii"), "application/json")

    def _fail(self, status: HTTPStatus, text: str) -> None:
        """The rest of the request is not read, so the connection ends."""
        self.close_connection = True
        self._send_json(status, {"error": text})

    def _send(self, status: HTTPStatus, body: bytes, kind: str, more: dict[str, str] | None = None) -> None:
        try:
            self.send_response(status)
            for name, value in (HEADERS | (more or {})).items():
                self.send_header(name, value)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)
        except (ConnectionError, TimeoutError):  # the page was closed
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the terminal has the address, which a user copies."""


def _plain(name: str) -> str:
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in name)[:100]
