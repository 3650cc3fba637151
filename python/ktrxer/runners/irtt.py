# SPDX-License-Identifier: MIT OR Apache-2.0
"""Isochronous UDP probes by `irtt client` to `irtt server`: round trips, both one-way delays, and the direction of losses."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from ktrxer.runners import tools
from ktrxer.runners.runner import MS, Options, Parameters, Runner, S, Times, Tool, between, ends_well
from ktrxer.runners.samples import NotUnderstood, Samples, whole
from ktrxer.runners.tools import part
from ktrxer.store import one_line
from ktrxer.store.columns import ANSWERED, LOST, LOST_DOWN, LOST_UP
from ktrxer.store.meta import Series

LOSSES = {"true": LOST, "true_up": LOST_UP, "true_down": LOST_DOWN}  # by the server's window of the last 64 probes
COUNTS = ("packets_sent", "packets_received", "duplicates", "late_packets", "server_packets_received", "timer_misses")


@dataclass(frozen=True, kw_only=True)
class Probes(Parameters):
    interval_ns: int = 20 * MS
    timeout_ns: int = 4 * S  # the wait for the last answers where there was none
    payload_bytes: int | None = None  # of a packet, with irtt's own header; None: just the header
    mark: str | None = None
    port: int = 2112
    group: str = "Ping (ms)"


def validate(p: Probes) -> None:
    tools.flow(p.interval_ns, 1, p.port, p.mark, payload_bytes=p.payload_bytes)
    between("the time-out", p.timeout_ns / S, 0.1, 60, " s")


def command(p: Probes, o: Options, times: Times) -> list[str]:
    host = p.host or o.host
    words = ["irtt", "client", "-Q", "-o", "-", "-d", f"{times.length_ns}ns", "-i", f"{p.interval_ns}ns", f"--wait=3x{p.timeout_ns}ns"]
    mark = [f"--dscp={tools.tos(p.mark)}"] if p.mark is not None else []  # the whole byte, in spite of its name
    source = [f"--local={_address(o.source)}"] if o.source else []
    return [*words, *tools.option("-l", p.payload_bytes), *mark, *source, *tools.family(o), f"{_address(host)}:{p.port}"]


def _address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def series(p: Probes, name: str) -> Mapping[Hashable, Series]:
    return {"rtt": Series(0, name, "latency", "ms", klass=p.mark, group=p.group)}


def read(_: Probes, samples: Samples, document: bytes) -> None:
    """irtt prints its result at its end. The one-way delays are computed after the run, from the server's time stamps."""
    made = json.loads(document)
    for trip in made["round_trips"]:
        _trip(samples, trip)
    counts = {name: count for name in COUNTS if type(count := part(made, "stats", name)) is int}
    # The run computes the load of the probes from the length and the far address.
    length, to = part(made, "config", "params", "length"), str(part(made, "config", "remote_address"))
    samples.result = {**counts, "payload_bytes": length, "to": to.rpartition(":")[0].strip("[]")}
    if wrong := part(made, "send_err") or part(made, "receive_err"):
        samples.reason("tool_failed", tool="irtt", error=one_line(str(wrong), 200))


def _trip(samples: Samples, trip: Any) -> None:
    sent_ns, seq, lost = samples.clock.real(trip["timestamps"]["client"]["send"]["wall"]), trip["seqno"], str(trip["lost"]).lower()
    if lost in LOSSES:
        samples.add("rtt", sent_ns, seq=seq, state=LOSSES[lost])
    elif lost == "false":
        far_ns = part(trip, "timestamps", "server", "receive", "wall")
        samples.add("rtt", sent_ns, seq=seq, state=ANSWERED, rtt_ns=trip["delay"]["rtt"], far_ns=far_ns or None)
    else:
        raise NotUnderstood(f"the probe {seq} is lost: {lost}")


RUNNER = Runner(
    "irtt", "UDP probes by irtt", Probes, validate, command, series, whole(read), ends_well,
    tool=Tool("irtt", "irtt", ["version"], r"irtt version: (\d+\.\d+\.\d+)", "0.9.0"), protocol="UDP",
    timeout_ns=lambda p, _: p.timeout_ns, probes=lambda _: 1,
)  # fmt: skip
