# SPDX-License-Identifier: MIT OR Apache-2.0
"""UDP flows by D-ITG: ITGSend to ITGRecv, which sends each packet back, so that the log of the sender has the round trips. ITGDec decodes
the log after the run."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal

from ktrxer.runners import marks, tools
from ktrxer.runners.runner import MS, Listener, Options, Parameters, Runner, S, Times, Tool, between, ends_well
from ktrxer.runners.samples import Line, NotUnderstood, Samples, by_line
from ktrxer.store.meta import Series

DAY_NS = 86_400 * S
TIME = r"(\d+):(\d+):(\d+\.\d+)"
PACKET = re.compile(rf"Flow>(\d+) Seq> *(\d+) Src> *\S+ Dest> *\S+ txTime>{TIME} rxTime>{TIME} Size> *\d+\s*$")
# One argument for each flow. What ITGSend prints for people goes to standard error. ITGDec prints a mark for each packet there.
SCRIPT = (
    'dir=$(mktemp -d) || exit; trap \'rm -rf "$dir"\' EXIT; trap : INT; cd "$dir" || exit; printf "%s\\n" "$@" >flows; '
    "ITGSend flows -l log >&2; status=$?; [ ! -s log ] || { ITGDec log -l text >/dev/null 2>&1; cat text; }; exit $status"
)
SIGNALS = 9000  # the TCP port of ITGRecv
VOIP_HZ = 50  # packets a second of G.711 with two samples in each


@dataclass(frozen=True, kw_only=True)
class Flows(Parameters):
    flows: int = 1
    model: Literal["constant", "poisson", "voip"] = "constant"  # when packets leave
    rate_hz: int = 100  # packets a second of each flow, not of voip
    payload_bytes: int = 512  # not of voip
    mark: str | None = None
    port: int = 8999  # of the first flow; each further one has the next
    group: str = "Ping (ms)"


def validate(p: Flows) -> None:
    between("flows", p.flows, 1, tools.FLOWS_MOST)
    between("the rate", p.rate_hz, 1, 100_000, " packets a second")
    between("the payload", p.payload_bytes, 20, 65_000, " bytes")
    between("the port", p.port, 1, 65_536 - p.flows)
    marks.check([p.mark])
    tools.no_interval(p, "rate_hz")
    if p.host:
        tools.word("the host", p.host)


def command(p: Flows, o: Options, times: Times) -> list[str]:
    model = {"constant": f"-C {p.rate_hz}", "poisson": f"-E {p.rate_hz}", "voip": "VoIP -x G.711.2 -h RTP"}[p.model]
    size = "" if p.model == "voip" else f"-T UDP -c {p.payload_bytes} "
    mark = f"-b {tools.tos(p.mark)} " if p.mark is not None else ""
    source = f"-sa {o.source} " if o.source else ""
    first = f"-a {p.host or o.host} {source}-m rttm -t {times.length_ns // MS} {mark}"
    return ["sh", "-c", SCRIPT, "sh", *(f"{first}-rp {p.port + flow} {size}{model}" for flow in range(p.flows))]


def series(p: Flows, name: str) -> Mapping[Hashable, Series]:
    names = tools.numbered(name, p.flows)
    return {flow: Series(0, one, "latency", "ms", None, flow, klass=p.mark, group=p.group) for flow, one in enumerate(names)}


def line(_: Flows, samples: Samples, line: Line) -> None:
    """`memory` has the send times of each flow by number."""
    found = PACKET.match(line.text)
    if found is None:
        raise NotUnderstood(line.text)
    flow, seq, sent_ns = int(found[1]) - 1, int(found[2]), _time(samples, found[3], found[4], found[5])
    samples.answered(flow, sent_ns, seq, _time(samples, found[6], found[7], found[8]) - sent_ns)
    samples.memory.setdefault(flow, {})[seq] = sent_ns


def _time(samples: Samples, hours: str, minutes: str, seconds: str) -> int:
    """A time of the day, UTC in every time zone: that of the day on which it is nearest to the run."""
    since_midnight = (int(hours) * 60 + int(minutes)) * 60 * S + round(float(seconds) * 1e6) * 1000
    near = samples.clock.zero_real_ns + samples.from_ns
    return samples.clock.real(near + (since_midnight - near + DAY_NS // 2) % DAY_NS - DAY_NS // 2)


def end(p: Flows, samples: Samples) -> None:
    """A number without an answer is a lost packet, which left after the packet before it."""
    rate = VOIP_HZ if p.model == "voip" else p.rate_hz
    for flow, sent in samples.memory.items():
        near, at = 1, samples.from_ns
        for seq in range(1, max(sent)):
            if seq in sent:
                near, at = seq, sent[seq]
            else:
                samples.lost(flow, at + (seq - near) * S // rate, seq)


RUNNER = Runner(
    "ditg", "UDP flows by D-ITG, with round trips", Flows, validate, command, series, by_line(line, end), ends_well,
    tool=Tool("ITGSend", "d-itg", ["-h"], r"ITGSend version (\d+\.\d+\.\d+)", "2.8"), protocol="UDP", loads=True,
    listeners=lambda p, o: [Listener(p.host or o.host, SIGNALS, "ITGRecv")],
)  # fmt: skip
