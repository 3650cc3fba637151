# SPDX-License-Identifier: MIT OR Apache-2.0
"""TCP handshakes with a port at equal intervals, for paths that let no other probe pass. Each connection is closed without data.

This file is run by its path (runners/handshake.py) and prints the objects of `ktrxer ping` (docs/schema/). The round trip is the kernel's,
from the first SYN to its answer (TCP_INFO). A handshake whose SYN was sent twice counts as a lost probe."""

from __future__ import annotations

import argparse
import socket
import struct
import sys
import threading
import time
from pathlib import Path

if __name__ == "__main__" and not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ktrxer.http.load import RTT_AT, S, emit, ns, stopping
from ktrxer.store.reasons import as_json, reason

RETRANSMITS_AT = 100  # tcpi_total_retrans in struct tcp_info


def handshake(given: argparse.Namespace, address: tuple[int, tuple[object, ...]], number: int, due_ns: int) -> None:
    family, where = address
    times: dict[str, object] = {"type": "sample", "number": number, "scheduled_ns": due_ns}
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.settimeout(given.timeout / S)
        sent_ns = time.monotonic_ns()
        try:
            if given.source:
                sock.bind((given.source, 0))
            sock.connect(where)
            info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
        except OSError:
            emit(times | {"kind": "lost"})
            return
    (rtt_us,), (again,) = (struct.unpack_from("=I", info, at) for at in (RTT_AT, RETRANSMITS_AT))
    emit(times | ({"kind": "lost"} if again else {"kind": "round_trip", "sent_ns": sent_ns, "rtt_ns": rtt_us * 1000}))


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("host")
    p.add_argument("port", type=int)
    p.add_argument("--interval", type=ns, default=S // 5)
    p.add_argument("--timeout", type=ns, default=4 * S)
    p.add_argument("--for", dest="length", type=ns, default=10 * S)
    p.add_argument("--start-at", type=int, help="CLOCK_REALTIME in nanoseconds")
    p.add_argument("--from", dest="source", default="")
    p.add_argument("--jsonl", action="store_true")
    p.add_argument("--stop-on-eof", action="store_true")
    p.add_argument("-4", dest="family", action="store_const", const=socket.AF_INET, default=0)
    p.add_argument("-6", dest="family", action="store_const", const=socket.AF_INET6)
    given = p.parse_args()
    real_minus_mono = time.time_ns() - time.monotonic_ns()
    emit({"type": "start", "schema": 1, "command": "handshake", "clock": {"mono_ns": time.monotonic_ns(), "real_ns": time.time_ns()}})
    try:
        found = socket.getaddrinfo(given.host, given.port, given.family, socket.SOCK_STREAM)[0]
    except OSError as error:
        why = as_json([reason("http_failed", error=f"{given.host}: {error.strerror}")])
        emit({"type": "end", "end_ns": time.monotonic_ns(), "verdict": "invalid", "reasons": why})
        return 1
    begin = given.start_at - real_minus_mono if given.start_at is not None else time.monotonic_ns()
    stopped, begun = stopping(given.stop_on_eof), []
    for number in range(given.length // given.interval):
        due = begin + number * given.interval
        if stopped.wait(max(0, due - time.monotonic_ns()) / S):
            break
        begun.append(threading.Thread(target=handshake, args=(given, (found[0], found[4]), number, due), daemon=True))
        begun[-1].start()
    for thread in begun:
        thread.join()
    emit({"type": "end", "end_ns": time.monotonic_ns(), "verdict": "valid", "reasons": []})
    return 0


if __name__ == "__main__":
    sys.exit(main())
