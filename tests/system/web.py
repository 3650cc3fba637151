#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A web server for tests of load: / has 64 KiB, /large 100 MB, /video as many bytes as are wanted; /upload takes POST requests. argv: port.
It prints a line when it listens."""

import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECE = bytes(1 << 16)


class Web(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def head(self, status, length):
        self.send_response(status)
        self.send_header("content-length", str(length))
        self.end_headers()

    def do_GET(self):
        wanted = re.fullmatch(r"bytes=0-(\d{1,8})", self.headers.get("range", "")) if self.path == "/video" else None
        length = int(wanted[1]) + 1 if wanted else {"/": len(PIECE), "/large": 1600 * len(PIECE)}.get(self.path)
        if length is None:
            self.head(404, 0)
            return
        self.head(206 if wanted else 200, length)
        while length > 0:
            length -= self.wfile.write(PIECE[:length])

    def do_POST(self):
        left = int(self.headers["content-length"])
        while left > 0:
            left -= len(self.rfile.read(min(left, len(PIECE))))
        self.head(200, 0)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # clients that go away


server = Server(("", int(sys.argv[1])), Web)
print("listening", flush=True)
server.serve_forever()
