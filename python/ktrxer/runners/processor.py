# SPDX-License-Identifier: MIT OR Apache-2.0
"""Processors of a host: use, steal and softirq time, of all together and of each core, from /proc/stat and /proc/softirqs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from ktrxer.runners import state
from ktrxer.runners.runner import MS, Options, Parameters, Runner, Times, ends_well
from ktrxer.runners.samples import NotUnderstood, Samples
from ktrxer.runners.state import Frame
from ktrxer.store.meta import Series

PATHS = ("/proc/stat", "/proc/softirqs")
# Fields of a line `cpu` (proc_stat(5)). user and nice include guest time, so the first eight fields are the total.
FIELDS = 8
IDLE, IOWAIT, SOFTIRQ, STEAL = 3, 4, 6, 7
CORES_MOST = 1024
SOFTIRQS = ("NET_RX", "NET_TX", "TIMER", "SCHED", "RCU", "TASKLET")


@dataclass(frozen=True, kw_only=True)
class Processors(Parameters):
    interval_ns: int = 200 * MS  # the kernel counts in ticks of 10 ms, so shorter intervals would be coarse
    cores: bool = False  # each core too


def validate(p: Processors) -> None:
    state.check_interval(p)


def command(p: Processors, _: Options, times: Times) -> list[str]:
    return state.loop('cat "$@"', p.interval_ns, times, *(PATHS if p.cores else PATHS[:1]))


def series(_: Processors, name: str) -> Mapping[Hashable, Series]:
    return {"cpu": Series(0, name, "host", "%", group="host")}


def read(p: Processors, samples: Samples, frame: Frame) -> None:
    """Use includes steal, because the stolen time does no work here."""
    counts = _counts(frame.text, p.cores)
    if "cpu" not in counts:
        raise NotUnderstood("no line cpu of /proc/stat")
    for name, now in counts.items():
        before = samples.memory.get(name)
        if before is None:
            samples.memory[name] = now
            continue
        passed = [max(0, b - a) for a, b in zip(before, now, strict=True)]  # iowait may decrease
        total = sum(passed)
        if not total:
            continue  # no tick since the last sample
        samples.memory[name] = now
        busy, steal, softirq = (100 * part / total for part in (total - passed[IDLE] - passed[IOWAIT], passed[STEAL], passed[SOFTIRQ]))
        if name == "cpu":
            samples.add("cpu", frame.at_ns, cpu_percent=busy, steal_percent=steal)
        else:
            _core(samples, frame.at_ns, name.removeprefix("cpu"), busy, steal, softirq)
    if p.cores:
        _softirqs(samples, frame)


def _core(samples: Samples, at_ns: int, core: str, busy: float, steal: float, softirq: float) -> None:
    for what, value in (("busy", busy), ("steal", steal), ("softirq", softirq)):
        samples.gauge((core, what), at_ns, value, f"{samples.name} core {core} {what}", "%", f"{samples.name}: {what} by core")


def _counts(text: str, cores: bool) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for line in text.splitlines():
        if not line.startswith("cpu"):
            if found:
                break  # of /proc/stat, the lines of processors are the first
            continue
        name, *words = line.split()
        if len(words) < 4 or not all(len(word) <= 19 and word.isdecimal() for word in words[:FIELDS]):
            raise NotUnderstood(line)
        if len(found) <= CORES_MOST and (name == "cpu" or (cores and name[3:].isdecimal())):
            numbers = [int(word) for word in words[:FIELDS]]
            found[name] = numbers + [0] * (FIELDS - len(numbers))
    return found


def _softirqs(samples: Samples, frame: Frame) -> None:
    """The table of /proc/softirqs: a column for each processor, under a line of their names."""
    cores: list[str] = []
    for line in frame.text.splitlines():
        words = line.split()
        if words and all(word.startswith("CPU") and word[3:].isdecimal() for word in words):
            cores = [word[3:] for word in words[:CORES_MOST]]
            continue
        kind = words[0].rstrip(":") if words else ""
        if not cores or kind not in SOFTIRQS:
            continue
        for core, word in zip(cores, words[1:], strict=False):
            count = state.whole(word)
            if count is not None:
                name = f"{samples.name} core {core} softirqs {kind}"
                samples.changing((kind, core), frame.at_ns, count, name, group=f"{samples.name}: softirqs by core")


RUNNER = Runner(
    "processor", "use, steal and softirq time of processors", Processors, validate, command, series, state.by_frame(read), ends_well,
    auxiliary=True, here=lambda p, _: state.Files(p, read, PATHS if p.cores else PATHS[:1]),
)  # fmt: skip
