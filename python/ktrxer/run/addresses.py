# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which address of a name to measure: the first one that accepts a TCP connection (RFC 8305), because one of several may be dead."""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Sequence

HEAD_START_S = 0.25  # before the next address is tried (RFC 8305, 5)
WAIT_S = 5.0


def connected_first(addresses: Sequence[str], port: int, source: str | None = None) -> str | None:
    """None: no address accepts a connection from `source` (None: any address of this host) within 5 s."""
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as waiting:
        start, begun = time.monotonic(), 0
        while begun < len(addresses) or waiting.get_map():
            waited = time.monotonic() - start
            if begun < len(addresses) and (not waiting.get_map() or waited >= begun * HEAD_START_S):
                if (attempt := _begin(addresses[begun], port, source)) is not None:
                    waiting.register(stack.enter_context(attempt), selectors.EVENT_WRITE, addresses[begun])
                begun += 1
                continue
            until = begun * HEAD_START_S if begun < len(addresses) else WAIT_S
            if waited >= until:
                break
            for key, _ in waiting.select(until - waited):
                ended = key.fileobj
                assert isinstance(ended, socket.socket)
                if not ended.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    return str(key.data)
                waiting.unregister(ended)
    return None


def _begin(address: str, port: int, source: str | None) -> socket.socket | None:
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)[0]
        attempt = socket.socket(family, kind, protocol)
    except OSError:
        return None
    attempt.setblocking(False)
    try:
        if source is not None:
            attempt.bind((source, 0))
        attempt.connect(where)
    except BlockingIOError:
        return attempt
    except OSError:
        attempt.close()
        return None
    return attempt


def ordered(addresses: Sequence[str], port: int, source: str | None = None) -> list[str]:
    """The one to measure first."""
    first = connected_first(addresses, port, source) if len(addresses) > 1 else None
    return list(addresses) if first is None else [first, *(one for one in addresses if one != first)]
