# SPDX-License-Identifier: MIT OR Apache-2.0
"""The client of the responsiveness test beside a server that ends its connection (GOAWAY of HTTP/2)."""

import asyncio
import socket

import pytest

pytest.importorskip("h2", reason="the Python package h2 is not installed (python/requirements.txt)")

import h2.config
import h2.connection
import h2.events
from hyperframe.frame import GoAwayFrame
from ktrxer.http import client


class Wire:
    """A transport of a client: what it writes is read by h2 as the server."""

    def __init__(self, server):
        self.server, self.requests, self.closed, self.sock = server, [], False, socket.socket()

    def write(self, data):
        self.requests += [one.stream_id for one in self.server.receive_data(data) if isinstance(one, h2.events.RequestReceived)]

    def get_extra_info(self, _):
        return self.sock

    def set_write_buffer_limits(self, **_):
        pass

    def get_write_buffer_size(self):
        return 0

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    abort = close


def goaway(last, error=0):
    return GoAwayFrame(0, last_stream_id=last, error_code=error).serialize()


def connection():
    """Our client beside a server: one load (stream 1)."""
    server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    server.initiate_connection()
    made, wire = client.Client(client.Target("https", "far", 443, "far")), Wire(server)
    made.raw = wire
    made.connection_made(wire)
    made.load("down", "/large")
    answers(made, server, 1)
    return made, server, wire


def answers(made, server, stream, body=b"", end=False):
    if not body:
        server.send_headers(stream, [(":status", "200")])
    else:
        server.send_data(stream, body, end_stream=end)
    made.data_received(server.data_to_send())


def test_requests_before_goaway_go_on():
    async def work():
        made, server, wire = connection()
        left = []
        made.on_leave = lambda: left.append(True)
        probes = [made.requested("GET", "/small") for _ in range(2)]  # streams 3 and 5
        assert wire.requests == [1, 3, 5]
        # The frame and data of a stream that goes on, in one segment. A server may send the frame twice.
        server.send_data(1, bytes(1000))
        made.data_received(goaway(2**31 - 1) + server.data_to_send())
        assert made.received == 1000 and left == [True] and not any(one.done() for one in probes)
        made.data_received(goaway(3))
        with pytest.raises(client.Unprocessed):
            await probes[1]
        with pytest.raises(client.Unprocessed, match="takes no more requests"):
            await made.requested("GET", "/small")
        assert wire.requests == [1, 3, 5] and left == [True]
        answers(made, server, 3)
        answers(made, server, 3, b"x", end=True)
        assert (await probes[0]).status == 200
        answers(made, server, 1, bytes(1000), end=True)
        assert made.received == 2000 and wire.requests == [1, 3, 5] and made.lost is None and not wire.closed

    asyncio.run(work())


def test_goaway_with_an_error_ends_the_connection():
    async def work():
        made, _, wire = connection()
        made.data_received(goaway(1, error=2))
        assert wire.closed and str(made.lost) == "the far end ended the connection (HTTP/2 error 2)"

    asyncio.run(work())
