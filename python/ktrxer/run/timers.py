# SPDX-License-Identifier: MIT OR Apache-2.0
"""Times that a run waits, by the round trip of its path as it was measured before the run. Each has a least value, which is enough for
paths on the ground, and a largest one."""

from __future__ import annotations

import socket
import threading
import time

S = 10**9
TRIP_MOST_NS = 5 * S  # of a round trip that counts: a longer one is a queue, or retransmissions

# Round trips of `ktrxer flow`: SYN, greeting, request, list of flows, SYN of the flows, cookies, clocks, start. A loss repeats some.
CONNECT_TRIPS = 12
TRIAL_TRIPS = CONNECT_TRIPS + 8  # with its few bytes, the results, and the clocks again
REPEATED_NS = 4 * S  # TCP repeats a lost SYN after 1 and 3 s
END_TRIPS = 4  # from the end of the sender: its last bytes, its report, the result of the receiver, the clocks again

LOAD_TRIPS = 15
LOST_TRIPS = 4
PROBES_OF_TRIP = 100

TRIAL_S = 12.0  # of all trials together
CONNECT_NS = 2 * S  # of flows that begin with the run
AHEAD_NS, AHEAD_MOST_NS = 3 * S, 50 * S  # --connect-ahead of `ktrxer flow`: without that option, and at most
GRACE_NS = 8 * S  # of a process after its time, for its last answers and the figures of the far end


def _trips(count: int, trip_ns: int) -> int:
    return count * min(trip_ns, TRIP_MOST_NS)


def trial_s(trip_ns: int, usual_s: float = TRIAL_S) -> float:
    return usual_s + _trips(TRIAL_TRIPS, trip_ns) / S


def ahead_ns(trip_ns: int) -> int | None:
    """The time before their beginning in which flows are connected; None: the usual one is enough."""
    needed = _trips(CONNECT_TRIPS, trip_ns)
    return min(needed + REPEATED_NS, AHEAD_MOST_NS) if needed > AHEAD_NS else None


def connect_ns(trip_ns: int, first_ns: int | None) -> int:
    """The time before the run in which flows are connected, the first of which begins at `first_ns`; None: there are none."""
    if first_ns is None:
        return 0
    return max(CONNECT_NS if first_ns < CONNECT_NS else 0, (ahead_ns(trip_ns) or 0) - first_ns)


def grace_ns(trip_ns: int) -> int:
    return GRACE_NS + _trips(END_TRIPS, trip_ns)


def idle_s(usual_s: float, trip_ns: int) -> float:
    """The idle time before a load: probes of its last round trip meet the load."""
    return max(usual_s, usual_s - 1 + _trips(6, trip_ns) / 5 / S)


def load_s(usual_s: float, trip_ns: int) -> float:
    """Slow start needs up to ten round trips until a queue is full."""
    return max(usual_s, _trips(LOAD_TRIPS, trip_ns) / S)


def pause_s(usual_s: float, trip_ns: int) -> float:
    """The time between two loads, in which the last packets of the first one arrive, and are repeated."""
    return max(usual_s, _trips(END_TRIPS, trip_ns) / S)


def probe_ns(usual_ns: int, trip_ns: int) -> int:
    """The time between probes on a path whose rate is not known, because few round trips do not show it."""
    return max(usual_ns, _trips(1, trip_ns) // PROBES_OF_TRIP)


def lost_ns(usual_ns: int, trip_ns: int) -> int:
    """A probe without an answer for so long is lost: a queue adds to the round trip of the idle path."""
    return max(usual_ns, _trips(LOST_TRIPS, trip_ns))


class Handshake:
    """A TCP connection to a port, whose handshake measures the round trip where no probe does. It begins at once, and disturbs nothing."""

    def __init__(self, host: str, port: int, limit_s: float = TRIAL_S) -> None:
        self.trip_ns = 0  # 0: it has not been answered
        self._thread = threading.Thread(target=self._connect, args=(host, port, limit_s), daemon=True)
        self._thread.start()

    def _connect(self, host: str, port: int, limit_s: float) -> None:
        begun = time.monotonic_ns()
        try:
            socket.create_connection((host, port), limit_s).close()
        except ConnectionRefusedError:
            pass  # an answer, too
        except OSError:
            return
        self.trip_ns = time.monotonic_ns() - begun
