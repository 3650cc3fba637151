# SPDX-License-Identifier: MIT OR Apache-2.0
"""Each name of the catalogue runs in virtual time, and its verdict is the expected one. References: the rate and the delay of the topology."""

from __future__ import annotations

import json
import math
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from guests import FOR_RUNS, ROOT, Lab
from ktrxer.catalogue.table import TABLE
from ktrxer.store import open_run
from ktrxer.store.columns import ANSWERED

HERE = Path(__file__).parent
RATE, RTT_MS = 8, 4  # Mbit/s of frames in each direction; of the topology without queues
# UDP's payload in the frames of udp_flood, the largest share of all names. Counts between two samples (200 ms) are interpolated, which adds up to 1 %.
MOST = 1.01 * RATE * 1400 / 1442
# A receiver counts in order, so the bytes behind a lost segment count when it has come again: some of them in the next step of 200 ms.
MOST_OF_STEP = 1.1 * MOST
LEAST = 0.85 * RATE  # payload of all flows of a direction
LEAST_OF = {
    "tcp_upload_1000": 0.78 * RATE,  # handshakes and control traffic of 1,000 flows have 8 % in a second
    "tcp_4up_squarewave": 0.75 * RATE,  # one flow, which begins: its slow start is a large part of a step of 200 ms
}
# The sample times (200 ms) are those at which staggered flows begin.
TIMES = ("--for", "1", "--delay", "0.4", "-i", "100ms", "--no-extras", "--json")
GUESTS = 4  # two at a time
LIMIT_S = 1200  # of one, on a busy machine
BESIDE = "server=" + " & ".join((
    *(f"{shlex.join([sys.executable, str(ROOT / 'tests' / program)])} {port}" for program, port in (("system/web.py", 80), ("python/mqtt_broker.py", 1883))),
    "iperf -s -p 5001 >/dev/null",
    "exec ktrxer serve --dscp-allow CS1,CS2,CS3,CS4,CS5,CS6,CS7,EF",
))  # fmt: skip


def settings(*words: str) -> tuple[str, ...]:
    return tuple(one for word in words for one in ("--set", word))


# Further words of a name: what it needs, and less traffic where its own takes minutes (`HEAVY` has that).
SHORT_BURST = ("--for", "1.4", *settings("burst_length=1", "burst_bandwidth=16M"))
METER = ("mqtt_host=server", "mqtt_port=1883", "mqtt_payload_key=power")
WORDS = {
    "rtt_fair_var_mixed": settings("data_directions=u,d"),
    "udp_flood_var_up": settings("udp_bandwidth=16M"),
    "udp_flood_var_up_stagger": ("--for", "1.2", *settings("udp_bandwidth=16M")),
    # In one second some flows do not get a byte: a first segment that CoDel drops again and again holds the others back.
    **dict.fromkeys(("rrul_50_up", "rrul_50_down", "tcp_50up"), ("--for", "3")),
    "rrul_100_up": ("--for", "5"),  # in three seconds the control traffic of 101 flows is 1.8 to 2.0 % of the rate down
    "rrul46compete": ("--for", "5"),  # the last upload begins after 4 s
    "bursts": SHORT_BURST,
    "bursts_11e": SHORT_BURST,
    "qdisc-stats": settings("place=netns:left", "interface=to-middle"),
    "mqtt_read": settings(*METER),
    "power_usage": settings(*METER, "ipmi_power_command=echo 5"),
}
# Refused before anything starts, with the reason.
REFUSED = {
    **dict.fromkeys(("rrul_torrent", "cubic_ledbat", "cubic_ledbat_1", "ledbat_cubic_1", "reno_cubic_westwood_ledbat"), "no congestion control 'ledbat'"),
    "l4s": "no congestion control 'prague'",  # of Linux, both
}
# Run again with what this kernel has. The other refused names have the recipe of a name that runs.
INSTEAD = {
    "rrul_torrent": settings("torrent_cc=lp"),
    "l4s": settings("l4s_cc=dctcp"),
    "cubic_ledbat_1": settings("labels=cubic,lp", "cc_algos=cubic,lp"),
}
# Degraded, with the whole reason: the figures of a test with many flows at this rate, and a tool that does not have what the verdict needs.
SHARE = r"the (control traffic|delay probes) of the run takes? [\d.]+ % of the rate that the run got"
DEGRADED = {
    **dict.fromkeys(("tcp_upload_1000", "l4s"), SHARE),
    "rrul_be_iperf": "the byte counts of the receiver are missing",
}
WITHOUT_BYTES = {"tcp_upload_1000": 0.5}  # share of the flows: in a second each has room for one packet of 1 kB
WITHOUT_SAMPLES = ("Dash stall",)  # no stall, no sample
# The sum of the rates is less than LEAST, because packets of other kinds have the rest.
SHARED = {"http-1down": "pages of 64 KiB", "http-rrul": "pages of 64 KiB", "rrul_50_up": "ACKs", "rrul_100_up": "ACKs", "rrul_50_down": "ACKs"}


@dataclass(frozen=True)
class Case:
    """A run, in a folder with its label."""

    label: str
    name: str
    words: tuple[str, ...] = ()

    def command(self) -> list[str]:
        hosts = 2 if "_var" in self.name and TABLE[self.name].hosts[1] > 1 else TABLE[self.name].hosts[0]
        far = "server-46" if TABLE[self.name].recipe == "rrul46" else "server"
        return ["run", self.name, *["-H", far] * hosts, *TIMES, "-D", self.label, *self.words]


@dataclass(frozen=True)
class Made:
    status: int
    message: str  # on standard error
    out: dict[str, Any]
    files: list[Path]


CASES = [Case(name, name, WORDS.get(name, ())) for name in TABLE] + [Case(f"{name} instead", name, words) for name, words in INSTEAD.items()]
# Traffic that takes minutes of processor time, with the parameters of the catalogue.
HEAVY = [Case(name, name, ("-l", length)) for name, length in (("bursts", "6"), ("bursts_11e", "6"), ("udp_flood_var_up", "1"), ("udp_flood_var_up_stagger", "1.2"))]


def in_one_guest(folder: Path, cases: Sequence[Case]) -> dict[str, Made]:
    lab = Lab(folder, FOR_RUNS)
    for case in cases:
        (lab.folder / case.label).mkdir()
    (lab.folder / "words").write_text(json.dumps([case.command() for case in cases]))
    words = settings(f"rate={RATE}mbit", f"delay={RTT_MS / 2:g}ms", "leaf=fq_codel")
    done = lab("run", "flent", "--time", "virtual", "--wall-limit", f"{LIMIT_S}s", *words, "--beside", BESIDE, "--",
               sys.executable, HERE / "several.py", "words", timeout=LIMIT_S)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {}
    for number, (case, status) in enumerate(zip(cases, json.loads((lab.folder / "statuses").read_text()), strict=True)):
        out, message = ((lab.folder / f"{number}.{end}").read_text() for end in ("out", "err"))
        found[case.label] = Made(status, message, json.loads(out or "{}"), list((lab.folder / case.label).iterdir()))
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    parts = [(tmp_path_factory.mktemp("guest"), CASES[number::GUESTS]) for number in range(GUESTS)]
    with ThreadPoolExecutor(2) as pool:
        return {label: one for part in pool.map(lambda part: in_one_guest(*part), parts) for label, one in part.items()}


def direction_rates(summary: dict[str, Any]) -> dict[str, float]:
    """By direction the sum over all flows in the time in which all of them run."""
    found: dict[str, float] = {}
    for row in summary["throughput"]:
        if row["name"] == "totals" and row["direction"] != "both":
            return {row["direction"]: row["mean_mbps"]}
        if row["direction"] != "both":
            found[row["direction"]] = found.get(row["direction"], 0) + (math.nan if row["mean_mbps"] is None else row["mean_mbps"])
    return found


def step_rates(summary: dict[str, Any], flows: dict[str, str]) -> dict[str, float]:
    """The same of each step, where flows begin one after another."""
    return {
        f"{step['from_s']:g} s {way}": sum(rate for name, rate in step["rates_mbps"].items() if flows[name] == way)
        for step in summary["steps"]
        for way in sorted({flows[name] for name in step["rates_mbps"]})
    }


def check(case: Case, one: Made) -> None:
    if case.name in REFUSED and case.label == case.name:
        assert (one.status, one.files) == (1, []) and REFUSED[case.name] in one.message, one
        return
    assert one.out, one.message
    verdict, reasons = one.out["verdict"], [reason["text"] for reason in one.out["reasons"]]
    if case.name in DEGRADED:
        assert (one.status, verdict) == (3, "degraded") and all(re.search(DEGRADED[case.name], reason) for reason in reasons), (verdict, reasons)
    else:
        assert (one.status, verdict, reasons) == (0, "valid", [])

    run = open_run(one.files[0])
    assert run.meta.series
    empty = 0
    for series in run.meta.series:
        arrays = run.arrays(series)
        assert len(arrays["t_ns"]) > 1 or series.name in WITHOUT_SAMPLES, series.name
        if series.kind == "latency":
            ms = arrays["rtt_ns"][arrays["state"] == ANSWERED] / 1e6
            assert RTT_MS <= ms.min() < RTT_MS + 2, series.name  # at the least a frame of another flow before it, in each direction
        elif series.kind == "bytes":
            empty += arrays["bytes"].max() == 0
        elif series.kind == "value":
            assert np.isfinite(arrays["value"]).all(), series.name

    flows = {series.name: str(series.direction) for series in run.meta.of_kind("bytes")}
    assert empty <= WITHOUT_BYTES.get(case.name, 0) * len(flows)
    if not flows:
        return
    steps = step_rates(one.out["summary"], flows)
    found = steps or direction_rates(one.out["summary"])
    most = MOST_OF_STEP if steps else MOST
    if case.name == "rrul_be_iperf":
        del found["up"]  # iperf counts what it writes to its socket, which is ahead of the path
    least = 0.4 * RATE if case.name in SHARED else LEAST_OF.get(case.name, LEAST)
    print(f"figure: {case.label}: {found}")
    assert found and all(least < rate <= most for rate in found.values()), {name: rate for name, rate in found.items() if not least < rate <= most}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_each_name(made: dict[str, Made], case: Case) -> None:
    check(case, made[case.label])


@pytest.fixture
def alone(tmp_path: Path, case: Case) -> Made:
    """A fixture, because a test itself has a shorter limit."""
    return in_one_guest(tmp_path, [case])[case.label]


@pytest.mark.slow
@pytest.mark.parametrize("case", HEAVY, ids=lambda case: case.label)
def test_with_all_of_its_traffic(alone: Made, case: Case) -> None:
    check(case, alone)


def test_all_names_that_are_listed() -> None:
    done = subprocess.run([sys.executable, "-m", "ktrxer", "tests"], env={"PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True, check=True)
    listed = [line.split()[0] for line in done.stdout.split("\n\n")[0].splitlines()]
    assert listed == list(TABLE) and len(listed) == 84
    assert {*WORDS, *REFUSED, *INSTEAD, *DEGRADED, *SHARED, *WITHOUT_BYTES} <= TABLE.keys()
    run = {TABLE[case.name].recipe for case in CASES if case.name not in REFUSED or case.label != case.name}
    assert run == {entry.recipe for entry in TABLE.values()}, "each recipe measures, in one of its names at least"
