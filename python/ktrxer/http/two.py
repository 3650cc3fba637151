# SPDX-License-Identifier: MIT OR Apache-2.0
"""HTTP/2 (RFC 9113) on an asyncio transport: what the server and the client of the responsiveness test have in common.

h2 is the protocol without I/O. Bodies are zeros, which are sent as fast as the windows and the transport allow."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable
from typing import Any, cast

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

PIECE = 1 << 16  # of a body, between two other streams
WINDOW = 1 << 24  # of a stream, and of a connection: 1 Gbit/s at 130 ms
FRAME_BYTES = 1 << 18  # the largest frame that this side receives: less work for each byte
STREAMS_MOST = 100  # at once, of a connection
HEADERS_MOST = 1 << 16
UNSENT_BYTES = 1 << 17
UNREAD_BYTES = 1 << 20  # of answers to a peer that does not read them
TCP_NOTSENT_LOWAT = 25
RTT_AT, ACKED_AT = 68, 120  # of tcpi_rtt (32 bits, microseconds) and tcpi_bytes_acked (64 bits) in struct tcp_info
BODY = bytes(PIECE)  # TLS encrypts it, so that no device can compress it

Headers = list[tuple[str, str]]


def sparing(sock: socket.socket) -> None:
    """Little unsent data waits in the socket, where a probe on the same connection would wait behind it."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Connection(asyncio.Protocol):
    """One connection. A subclass handles the events of its side."""

    def __init__(self, client: bool) -> None:
        config = h2.config.H2Configuration(client_side=client, header_encoding="utf-8")
        self.h2 = h2.connection.H2Connection(config)
        # Set before the first frame: h2 applies a later change too late for frames that arrive with its acknowledgement.
        codes = h2.settings.SettingCodes
        self.h2.local_settings = h2.settings.Settings(client=client, initial_values={
            codes.INITIAL_WINDOW_SIZE: WINDOW, codes.MAX_FRAME_SIZE: FRAME_BYTES, codes.MAX_CONCURRENT_STREAMS: STREAMS_MOST,
            codes.MAX_HEADER_LIST_SIZE: HEADERS_MOST,
        })  # fmt: skip
        self.h2.max_inbound_frame_size = FRAME_BYTES
        self.transport: asyncio.Transport | None = None
        self.sending: dict[int, int | None] = {}  # bytes that are left, by stream; None: endless
        self.paused = False
        self.lost: Exception | None = None
        self.closed = False
        self.on_close: Callable[[], None] | None = None

    # ------------------------------------------------------------------------------------------------------ of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=PIECE)
        sparing(self.transport.get_extra_info("socket"))
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(WINDOW)
        self.flush()

    def data_received(self, data: bytes) -> None:
        try:
            for event in self.h2.receive_data(data):
                self._event(event)
        except (h2.exceptions.ProtocolError, UnicodeError) as error:
            self.fail(error)
            return
        self.pump()

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self.pump()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self.lost = self.lost or exc
        self.ended()
        if self.on_close is not None:
            self.on_close()

    # --------------------------------------------------------------------------------------------------- for both sides

    def _event(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.DataReceived):
            if event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            self.data(event.stream_id, len(event.data), event.data if len(event.data) <= PIECE else b"")
        elif isinstance(event, h2.events.StreamReset):
            self.sending.pop(event.stream_id, None)
            self.reset(event.stream_id, int(event.error_code or 0))
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.fail(ConnectionError(f"the far end ended the connection (HTTP/2 error {int(event.error_code or 0)})"))
        else:
            self.other(event)

    def fail(self, error: Exception) -> None:
        self.lost = self.lost or error
        self.flush()
        if self.transport is not None:
            self.transport.close()

    def close(self) -> None:
        if self.transport is not None and not self.closed:
            self.transport.abort()

    def flush(self) -> None:
        """Bodies wait for the transport (pause_writing). Answers to a flood of PING, SETTINGS or requests do not, so they have a limit."""
        data = self.h2.data_to_send()
        if data and self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)
            if self.transport.get_write_buffer_size() > UNREAD_BYTES:
                self.lost = self.lost or ConnectionError(f"the far end does not read: more than {UNREAD_BYTES} bytes wait for it")
                self.close()

    def pump(self) -> None:
        """A piece of each stream in turn, until the transport or the windows are full."""
        self.flush()
        moved = True
        while moved and not self.paused and not self.closed:
            moved = False
            for stream, left in list(self.sending.items()):
                size = min(PIECE, left if left is not None else PIECE)
                try:
                    size = min(size, self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
                    if size <= 0:
                        continue
                    last = left is not None and left == size
                    self.h2.send_data(stream, BODY[:size], end_stream=last)
                except h2.exceptions.ProtocolError:  # the stream has been reset
                    self.sending.pop(stream, None)
                    continue
                if last:
                    self.sending.pop(stream)
                elif left is not None:
                    self.sending[stream] = left - size
                moved = True
                self.flush()
                if self.paused:
                    break

    def kernel(self) -> tuple[int, int]:
        """Acknowledged bytes of this connection, and its round trip in nanoseconds, by the kernel."""
        sock: Any = self.transport.get_extra_info("socket") if self.transport is not None and not self.closed else None
        try:
            info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
            return struct.unpack_from("=Q", info, ACKED_AT)[0], struct.unpack_from("=I", info, RTT_AT)[0] * 1000
        except (AttributeError, OSError, struct.error):
            return 0, 0

    # ----------------------------------------------------------------------------------------------------- for one side

    def data(self, stream: int, count: int, piece: bytes) -> None: ...
    def reset(self, stream: int, _: int) -> None: ...
    def other(self, event: h2.events.Event) -> None: ...
    def ended(self) -> None: ...
