# SPDX-License-Identifier: MIT OR Apache-2.0
"""meta.json: all data of a run except its samples. The classes are the specification; docs/reference/store.md explains them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import ktrxer
from ktrxer.store import checked, limits, objects
from ktrxer.store.errors import StoreError, printable
from ktrxer.store.reasons import Reason, sentences

SCHEMA = "ktrxer-run/1"

# The protocol of the probes of runners whose files do not name it: imported runs, and those of earlier versions.
PROTOCOLS = {"stamp": "UDP", "irtt": "UDP", "ping": "ICMP"}

Kind = Literal[
    "latency", "bytes", "tcp_info", "udp", "qdisc", "host", "value", "range", "pair", "tcp_pair", "ip_capacity", "hop"
]
Status = Literal["planned", "running", "ended", "failed", "killed"]
Verdict = Literal["valid", "degraded", "invalid"]


@dataclass
class Zero:
    """The origin of a run's times, on two clocks of the measuring host."""

    monotonic_ns: int
    realtime_ns: int  # CLOCK_REALTIME at the zero, with an uncertainty of bound_ns
    bound_ns: int = 0
    boot_id: str | None = None


@dataclass
class Host:
    name: str
    kernel: str | None = None
    machine: str | None = None
    processors: int | None = None


PhaseName = Literal["idle_before", "load", "drain", "idle_after"]


@dataclass
class Phase:
    name: PhaseName
    from_ns: int
    to_ns: int

    def __post_init__(self) -> None:
        if self.to_ns < self.from_ns:
            raise ValueError("a phase ends before it begins")


@dataclass
class Runner:
    """A process that measured, or that failed to start."""

    id: int
    name: str
    kind: str  # of the runner: ping, stamp, flow, ...
    argv: list[str]
    host: str | None = None  # the far host, as the user wrote it
    status: Status = "planned"
    exit_status: int | None = None  # negative: number of the signal that killed the process
    started_ns: int | None = None
    ended_ns: int | None = None
    end: dict[str, Any] | None = None  # the `end` object of the process (docs/schema/)
    stderr_tail: str = ""
    interval_ns: int | None = None  # of its probes or samples
    from_ns: int | None = None  # planned start of the measurement
    to_ns: int | None = None
    processor_ns: int | None = None  # CPU time of the process and its children
    protocol: str | None = None  # of its probes: UDP, ICMP, ...
    place: str = "local"  # the place in which it ran
    parameters: dict[str, Any] = field(default_factory=dict)  # resolved parameters of its runner
    tool_version: str | None = None  # version of a foreign program
    auxiliary: bool = False  # it recorded the state of a host beside the measurement
    process: int | None = None  # Runner.id of the process that did its work; None: a process of its own
    unknown: list[str] = field(default_factory=list)  # fields of its output that the version that wrote the run did not know

    def __post_init__(self) -> None:
        if self.protocol is None:
            self.protocol = PROTOCOLS.get(self.kind)
        self._of: dict[str, Any] | None = None
        self._result: dict[str, Any] = {}

    @property
    def result(self) -> dict[str, Any]:
        """The fields of `end` that the tables of this version have: each has its type, or is not there."""
        if self.end is not self._of:
            self._of, self._result = self.end, objects.result_of(self.kind, self.end)
        return self._result


@dataclass
class Series:
    id: int
    name: str  # Flent's name if Flent has one: "TCP upload BE", "Ping (ms) ICMP"
    kind: Kind
    unit: str
    runner: int | None = None  # Runner.id
    flow: int | None = None
    direction: Literal["up", "down", "both"] | None = None
    klass: str | None = None  # BE, BK, CS5, EF, ... as the packets are marked
    group: str | None = None  # series of one group are summed or drawn together: "TCP upload", "Ping (ms)"
    data_name: str | None = None  # the name in the imported file
    count: bool = False  # of kind `value`: a count that only grows. A plot shows its growth


@dataclass
class Meta:
    id: str
    test: str
    created: str  # RFC 3339
    host: Host
    zero: Zero
    length_ns: int  # planned length of the whole run, with its idle phases
    schema: str = SCHEMA
    title: str = ""
    version: str = ""  # of ktrxer
    targets: list[str] = field(default_factory=list)  # the far hosts, as the user wrote them
    verdict: Verdict | None = None  # None during the run
    reasons: list[Reason] = field(default_factory=list)
    # Fields that a list of runs does not show stand behind those that it shows (head.py).
    phases: list[Phase] = field(default_factory=list, metadata={"most": limits.PHASES})
    settings: dict[str, Any] = field(default_factory=dict)  # the test's parameters
    command: list[str] = field(default_factory=list)  # this command repeats the run
    runners: list[Runner] = field(default_factory=list, metadata={"most": limits.RUNNERS})
    series: list[Series] = field(default_factory=list, metadata={"most": limits.SERIES})
    accounts: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)  # of the hosts, before and after the run
    plots: list[str] = field(default_factory=list)
    panels: list[dict[str, Any]] = field(default_factory=list)  # of the recipe's own (catalogue/recipe.py, Panel)

    def __post_init__(self) -> None:
        self.ignored: list[str] = []  # fields, series and phases of the file that this version does not have
        if self.schema != SCHEMA:
            raise ValueError(f"schema {self.schema[:40]!r}; this version of ktrxer reads {SCHEMA!r}: a newer one is needed")
        for what, numbers in (("series", [s.id for s in self.series]), ("runners", [r.id for r in self.runners])):
            if len(set(numbers)) != len(numbers):
                raise ValueError(f"two of the {what} have the same id")
            if any(not 0 <= number < 2**31 for number in numbers):
                raise ValueError(f"an id of the {what} is not a number of 31 bits")
        names = [series.name for series in self.series]
        if len({(series.name, series.kind) for series in self.series}) != len(names):
            raise ValueError("two series have the same name and kind")
        known = {runner.id for runner in self.runners}
        if any(series.runner is not None and series.runner not in known for series in self.series):
            raise ValueError("a series refers to a runner that does not exist")
        if not 0 <= self.length_ns <= limits.SPAN_NS:
            raise ValueError("length_ns is out of range")
        if any(abs(at) > limits.SPAN_NS for phase in self.phases for at in (phase.from_ns, phase.to_ns)):
            raise ValueError("a phase ends after the run")

    @property
    def unknown(self) -> list[str]:
        """What this version does not have of the file, and what it or the writing version did not have of the output of the commands."""
        ends = [name for one in self.runners for name in (*one.unknown, *objects.unknown_of(one.kind, one.end))]
        return list(dict.fromkeys([*self.ignored, *ends]))

    @property
    def sentences(self) -> list[str]:
        """The reasons, for people."""
        return sentences(self.reasons)

    def phase(self, name: str) -> Phase | None:
        return next((phase for phase in self.phases if phase.name == name), None)

    def runner_of(self, series: Series) -> Runner | None:
        number = series.runner
        if number is None:
            return None
        if 0 <= number < len(self.runners) and self.runners[number].id == number:
            return self.runners[number]  # the usual case: no search among thousands
        return next((runner for runner in self.runners if runner.id == number), None)

    def of_kind(self, kind: str) -> list[Series]:
        return [series for series in self.series if series.kind == kind]


def read(text: bytes, where: str) -> Meta:
    made = checked.load(text, where)
    if not isinstance(made, dict) or made.get("version") == ktrxer.__version__:
        return checked.parse(Meta, made, where)
    newer = _left_out(made) if _numbers(made.get("version")) > _numbers(ktrxer.__version__) else []
    meta = checked.parse(Meta, made, where)
    parts = [(Meta, made), *((kind, one) for name, kind in _PARTS.items() for one in made.get(name, ()))]
    meta.ignored = newer + sorted({printable(name)[:60] for kind, one in parts for name in one.keys() - checked.names(kind)})
    return meta


_PARTS = {"runners": Runner, "series": Series, "phases": Phase}
_WORDS = {"series": ("kind", get_args(Kind)), "phases": ("name", get_args(PhaseName))}


def _numbers(version: Any) -> tuple[int, ...]:
    found = re.match(r"\d{1,9}(\.\d{1,9})*", version) if isinstance(version, str) else None
    return tuple(map(int, found[0].split("."))) if found else ()


def _left_out(made: dict[str, Any]) -> list[str]:
    """Take out the series and phases of a kind that this version does not have."""
    names = []
    for part, (key, known) in _WORDS.items():
        those = made[part] if isinstance(made.get(part), list) else []
        new = [one for one in those if isinstance(one, dict) and isinstance(one.get(key), str) and one[key] not in known]
        names += [f"{part} of {key} {printable(one[key])[:40]}" for one in new]
        if new:
            made[part] = [one for one in those if one not in new]
    return names


def write(meta: Meta) -> bytes:
    return checked.dump(meta, "meta.json")


__all__ = ["SCHEMA", "Host", "Meta", "Phase", "Runner", "Series", "StoreError", "Zero", "read", "write"]
