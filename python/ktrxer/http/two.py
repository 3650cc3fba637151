# SPDX-License-Identifier: MIT OR Apache-2.0
"""HTTP/2 (RFC 9113) on an asyncio transport: what the server and the client of the responsiveness test have in common.

h2 is the protocol without I/O. Bodies are zeros, which are sent as fast as the windows and the transport allow."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Any, cast

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

from ktrxer.http.load import ACKED_AT, RTT_AT, TCP_NOTSENT_LOWAT

PIECES = 1 << 12, 1 << 16  # of a body, between two other streams: least and most
WINDOW = 1 << 24  # of a stream, and of a connection: 1 Gbit/s at 130 ms
FRAME_BYTES = 1 << 18  # the largest frame that this side receives: less work for each byte
STREAMS_MOST = 100  # at once, of a connection
HEADERS_MOST = 1 << 16
UNSENT_BYTES = 1 << 12, 1 << 17  # in the socket: least and most
UNSENT_S = 0.02  # of the connection's rate
ROUNDS = 8
FIRST_UNSENT = 1 << 14  # before the rate is known
SIOCOUTQNSD = 0x894B
UNREAD_BYTES = 1 << 20  # of answers to a peer that does not read them
RATE_AT = 160  # of tcpi_delivery_rate (64 bits, bytes a second) in struct tcp_info
BODY = bytes(PIECES[1])  # TLS encrypts it, so that no device can compress it


async def secured(raw: asyncio.Transport, peer: Connection, context: ssl.SSLContext, **more: Any) -> asyncio.Transport | None:
    """The TLS layer above `raw`; None if the connection has ended. Neither layer keeps data that the layer below has not taken, because a
    probe on the same connection would wait behind them. asyncio gives only the owner of `raw` the means to limit its buffer."""
    raw.set_write_buffer_limits(high=0)
    peer.raw = raw
    return await asyncio.get_running_loop().start_tls(raw, peer, context, **more)


class Http2(h2.connection.H2Connection):
    """h2 ends a connection at its first GOAWAY and discards what follows (python-hyper/h2#1181). By RFC 9113, 6.8, the streams up to
    the one that GOAWAY names go on."""

    def _receive_goaway_frame(self, frame: Any) -> tuple[list[Any], list[h2.events.Event]]:
        if frame.error_code or not self.config.client_side:
            return super()._receive_goaway_frame(frame)
        event = h2.events.ConnectionTerminated()
        event.error_code, event.last_stream_id = h2.errors.ErrorCodes.NO_ERROR, frame.last_stream_id
        return [], [event]


class Connection(asyncio.Protocol):
    """One connection. A subclass handles the events of its side."""

    def __init__(self, client: bool) -> None:
        config = h2.config.H2Configuration(client_side=client, header_encoding="utf-8")
        self.h2 = Http2(config)
        # Set before the first frame: h2 applies a later change too late for frames that arrive with its acknowledgement.
        codes = h2.settings.SettingCodes
        self.h2.local_settings = h2.settings.Settings(client=client, initial_values={
            codes.INITIAL_WINDOW_SIZE: WINDOW, codes.MAX_FRAME_SIZE: FRAME_BYTES, codes.MAX_CONCURRENT_STREAMS: STREAMS_MOST,
            codes.MAX_HEADER_LIST_SIZE: HEADERS_MOST,
        })  # fmt: skip
        self.h2.max_inbound_frame_size = FRAME_BYTES
        self.transport: asyncio.Transport | None = None
        self.raw: asyncio.Transport | None = None  # below TLS
        self.sending: dict[int, int] = {}  # bytes that are left, by stream
        self.paused = False
        self.early = b""  # came with the end of the handshake, before connection_made()
        self.unsent = 0  # limit of the unsent data in the socket
        self.until_look = 0  # bytes of bodies
        self.watched: int | None = None  # copy of the socket's descriptor: asyncio lets only the transport wait for the descriptor itself
        self.lost: Exception | None = None
        self.closed = False
        self.on_close: Callable[[], None] | None = None

    # ------------------------------------------------------------------------------------------------------ of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=1)  # with 0 the TLS layer would pause an empty buffer
        sock = self.transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.watched = os.dup(sock.fileno())
        self._limit(FIRST_UNSENT)
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(WINDOW)
        self.flush()
        self.data_received(self.early)

    def data_received(self, data: bytes) -> None:
        if self.transport is None:
            self.early += data
            return
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

    def eof_received(self) -> None:
        self.sending.clear()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self.watched is not None:
            asyncio.get_running_loop().remove_writer(self.watched)
            os.close(self.watched)
            self.watched = None
        self.lost = self.lost or exc
        self.ended()
        if self.on_close is not None:
            self.on_close()

    # --------------------------------------------------------------------------------------------------- for both sides

    def _event(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.DataReceived):
            if event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            self.data(event.stream_id, len(event.data), event.data if len(event.data) <= PIECES[1] else b"")
        elif isinstance(event, h2.events.StreamReset):
            self.sending.pop(event.stream_id, None)
            self.reset(event.stream_id, int(event.error_code or 0))
        elif isinstance(event, h2.events.ConnectionTerminated) and not event.error_code and self.h2.config.client_side:
            self.leave(event.last_stream_id or 0)
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.fail(ConnectionError(f"the far end ended the connection (HTTP/2 error {int(event.error_code or 0)})"))
        else:
            self.other(event)

    @property
    def ending(self) -> bool:
        """asyncio discards what is written now; the layer below TLS ends first."""
        return self.transport is None or self.transport.is_closing() or self.raw is None or self.raw.is_closing()

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
        if data and self.transport is not None and not self.ending:
            self.transport.write(data)
            if self.transport.get_write_buffer_size() > UNREAD_BYTES:
                self.lost = self.lost or ConnectionError(f"the far end does not read: more than {UNREAD_BYTES} bytes wait for it")
                self.close()

    def pump(self) -> None:
        """A piece of each stream in turn, until the socket, the transport or the windows are full. After ROUNDS it is the turn of other
        connections."""
        self.flush()
        for _ in range(ROUNDS):
            moved = False
            for stream, left in list(self.sending.items()):
                if self.paused or self.ending or self._full():
                    return
                size = min(max(PIECES[0], self.unsent // 2), left)
                try:
                    size = min(size, self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
                    if size <= 0:
                        continue
                    last = left == size
                    self.h2.send_data(stream, BODY[:size], end_stream=last)
                except h2.exceptions.ProtocolError:  # the stream has been reset
                    self.sending.pop(stream, None)
                    continue
                if last:
                    self.sending.pop(stream)
                    self.sent(stream)
                else:
                    self.sending[stream] = left - size
                moved = True
                self.until_look -= size
                self.flush()
            if not moved:
                return
        if self.watched is not None:
            asyncio.get_running_loop().add_writer(self.watched, self._writable)

    def _full(self) -> bool:
        """Whether a piece more would delay probes of this connection. The kernel fills its newest segment, of up to 64 KiB, whatever
        TCP_NOTSENT_LOWAT says, and obeys that limit in poll() alone."""
        if self.watched is None:
            return False
        if self.until_look <= 0:
            self._limit(round(self.kernel()[2] * UNSENT_S))
        with contextlib.suppress(OSError):
            (unsent,) = struct.unpack("=i", fcntl.ioctl(self.watched, SIOCOUTQNSD, bytes(4)))
            if unsent >= self.unsent:
                asyncio.get_running_loop().add_writer(self.watched, self._writable)
                return True
        return False

    def _writable(self) -> None:
        if self.watched is not None:
            asyncio.get_running_loop().remove_writer(self.watched)
        self.pump()

    def _limit(self, unsent: int) -> None:
        """Unsent data in the socket delays probes of the same connection, and too little of it starves a fast one."""
        self.unsent = min(max(unsent, UNSENT_BYTES[0]), UNSENT_BYTES[1])
        self.until_look = 8 * self.unsent
        sock: Any = self.transport.get_extra_info("socket") if self.transport is not None else None
        with contextlib.suppress(OSError, AttributeError):  # the connection has ended
            sock.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, self.unsent)

    def kernel(self) -> tuple[int, int, int]:
        """Acknowledged bytes of this connection, its round trip in nanoseconds, and its rate in bytes a second, by the kernel."""
        sock: Any = self.transport.get_extra_info("socket") if self.transport is not None and not self.closed else None
        try:
            info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
            (acked,), (rtt_us,), (rate,) = (
                struct.unpack_from(kind, info, at) for kind, at in (("=Q", ACKED_AT), ("=I", RTT_AT), ("=Q", RATE_AT))
            )
            return acked, rtt_us * 1000, rate
        except (AttributeError, OSError, struct.error):
            return 0, 0, 0

    # ----------------------------------------------------------------------------------------------------- for one side

    def data(self, stream: int, count: int, piece: bytes) -> None: ...
    def sent(self, stream: int) -> None: ...
    def reset(self, stream: int, _: int) -> None: ...
    def leave(self, last: int) -> None: ...
    def other(self, event: h2.events.Event) -> None: ...
    def ended(self) -> None: ...
