# SPDX-License-Identifier: MIT OR Apache-2.0
"""The figures at the end of a command are those of its samples: extremes exactly, quantiles within the resolution that the line states."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ktrxer_lab import hosts
from numpy.typing import NDArray
from printed_figures import disagreements

Objects = list[dict[str, Any]]
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
RESOLUTION = "(quantiles +- 0.1 %)"


def samples(objects: Objects, kind: str, name: str) -> NDArray[np.int64]:
    return np.array([one[name] for one in objects if one.get("kind") == kind and one.get(name) is not None], np.int64)


def exact(values: NDArray[np.int64], share: float) -> int:
    """Of type 1: the smallest value with at least this share at or below it."""
    return int(np.sort(values)[max(0, math.ceil(len(values) * share - 1e-9) - 1)])


def agrees(found: dict[str, float], values: NDArray[np.int64]) -> None:
    """`found` in microseconds, the values in nanoseconds."""
    assert round(found["min"] * 1000) == values.min() and round(found["max"] * 1000) == values.max()
    for name, share in SHARES.items():
        true = exact(values, share)
        assert found[name] * 1000 == pytest.approx(true, rel=0.001 if abs(true) > 2047 else 0, abs=0.6), name
    spread = abs(exact(values, 0.75)) + abs(exact(values, 0.25))
    assert found["iqr"] * 1000 == pytest.approx(exact(values, 0.75) - exact(values, 0.25), abs=0.001 * spread + 0.6)


@pytest.fixture
def run(ktrxer: Path) -> Callable[..., Objects]:
    def go(host: hosts.Netns, *words: object) -> Objects:
        done = host.run([str(ktrxer), *map(str, words), "--jsonl"], check=False, timeout=60)
        assert done.stdout, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return go


@pytest.fixture
def text(ktrxer: Path) -> Callable[..., list[str]]:
    """The lines of a command that have a distribution."""

    def go(host: hosts.Netns, *words: object) -> list[str]:
        done = host.run([str(ktrxer), *map(str, words)], check=False, timeout=60)
        return [line for line in (done.stdout + done.stderr).splitlines() if re.search(r"\bp99 [-\d]", line)]

    return go


def test_ping(shared_pair, run):
    a, b = shared_pair
    objects = run(a, "ping", b.address, "--interval", "500us", "--count", 3000)
    end = objects[-1]
    rtts = samples(objects, "round_trip", "rtt_ns")
    assert len(rtts) == end["received"] > 1000
    agrees(end["rtt_us"], rtts)
    agrees(end["lateness_us"], samples(objects, "round_trip", "sent_ns") - samples(objects, "round_trip", "scheduled_ns"))


def test_stamp(shared_pair, run, serve):
    """The one-way delays of more than 262,144 probes: tests/unit/test_stamp_samples.c."""
    a, b = shared_pair
    serve(b)
    objects = run(a, "stamp", b.address, "--interval", "500us", "--count", 3000)
    end = objects[-1]
    rtts = samples(objects, "round_trip", "rtt_ns")
    assert len(rtts) == end["received"] > 1000
    agrees(end["rtt_us"], rtts)
    agrees(end["lateness_us"], samples(objects, "round_trip", "lateness_ns"))
    for name in ("own_queue", "far_queue", "ipdv"):
        agrees(end[f"{name}_us"], samples(objects, "round_trip", f"{name}_ns"))


def test_send(shared_pair, run):
    a, b = shared_pair
    objects = run(a, "send", b.address, "--interval", "500us", "--count", 3000)
    lateness = samples(objects, "probe", "lateness_ns")
    assert len(lateness) == objects[-1]["sent"] == 3000
    agrees(objects[-1]["lateness_us"], lateness)


def test_owamp(shared_pair, run, serve, token):
    a, b = shared_pair
    serve(b, "--token-file", token, "--owamp-port", 861)
    objects = run(a, "owamp", b.address, "--interval", "1ms", "--count", 1000, "--timeout", "500ms")
    for way in ("up", "down"):
        records = [one for one in objects if one.get("kind") == "owamp" and one["direction"] == way and one["received_ns"]]
        delays = np.array([one["received_ns"] - one["sent_ns"] for one in records], np.int64)
        assert len(delays) == objects[-1][way]["arrived"] > 500
        agrees(objects[-1][way]["delay_variation_us"], delays - delays.min())


def test_tcp(shared_pair, run, tmp_path):
    a, b = shared_pair
    (tmp_path / "large").write_bytes(bytes(20000))
    server = b.popen([sys.executable, "-u", "-m", "http.server", "--bind", b.address, "--directory", str(tmp_path), "--protocol", "HTTP/1.1", "80"])
    assert "Serving" in server.stdout.readline()
    try:
        objects = run(a, "tcp", b.address, "--path", "/large", "--count", 200, "--interval", "10ms", "--connections", 8)
    finally:
        server.kill()
        server.communicate()
    agrees(objects[-1]["rtt_us"], samples(objects, "tcp_pair", "rtt_ns"))


def test_trace(shared_pair, run):
    """The median of a hop is exact."""
    a, b = shared_pair
    objects = run(a, "trace", b.address, "--protocol", "icmp", "--repeat", 30, "--interval", "20ms")
    node = objects[-1]["hops"][0]["nodes"][0]
    rtts = samples([one for one in objects if one.get("hop") == 1], "hop_answer", "rtt_ns")
    assert len(rtts) == node["answers"] > 10
    assert [round(node["rtt_us"][name] * 1000) for name in ("min", "p50", "max")] == [rtts.min(), exact(rtts, 0.5), rtts.max()]


def test_each_line_states_the_resolution(shared_pair, text, serve, token):
    a, b = shared_pair
    serve(b, "--token-file", token, "--owamp-port", 861)
    few = ("--interval", "5ms", "--count", 20)
    for words in (("ping", b.address), ("stamp", b.address, "--dscp", "BE,EF"), ("send", b.address), ("owamp", b.address, "--timeout", "500ms")):
        found = text(a, *words, *few)
        assert found, words
        assert all(RESOLUTION in line for line in found), found


FIGURES = ("received", "lost", "too_late", "requested", "sent", "rtt_us.min", "rtt_us.p50", "rtt_us.iqr", "rtt_us.p95", "rtt_us.p99", "rtt_us.max", "own_queue_us.p95")
MORE = ("lost_up", "lost_unknown", "far_queue_us.p50", "ipdv_us.p99", "ipdv_down_us.p50")


OTHERS = {
    "flow both": ("flows.0.received_bytes", "flows.0.acked_bytes", "flows.1.samples_local", "flows.1.samples_remote"),
    "flow up -u -b 2M": ("flows.0.received_bytes", "flows.0.sent_bytes", "flows.0.samples_local"),
    "capacity --direction down --row 20": (
        "down.sub_intervals", "down.datagrams", "down.lost", "down.reordered", "down.duplicates", "down.loss", "down.delay_variation.max_ns",
        "down.rtt_variation.min_ns", "down.maximum.bit_s", "down.maximum.loss", "down.maximum.sub_interval", "down.maximum.delay_variation.min_ns",
    ),
    "pair": ("up.sizes.0.pairs", "up.sizes.1.lost", "down.sizes.0.unsent", "down.sizes.1.usable", "down.sizes.0.one_stamp", "up.sizes.0.reordered"),
    "abw": ("up.steps", "up.probes", "down.probes_lost", "down.fleets"),
    "ppt measure": ("up.trains.0.probes", "up.trains.1.lost", "up.trains.0.usable"),
    "trace": ("answered", "hops.0.answered", "hops.0.nodes.0.answers", "hops.0.nodes.0.rtt_us.min", "hops.0.nodes.0.rtt_us.p50", "hops.0.nodes.0.rtt_us.max"),
}  # fmt: skip
SHORT = {
    "flow": ("--for", "1s"), "capacity": ("--for", "5s"), "pair": ("--count", "30"), "ppt": ("--count", "30", "--interval", "10ms"),
    "trace": ("--one-route",), "abw": ("--direction", "both"),
}  # fmt: skip


@pytest.mark.parametrize("command", OTHERS)
def test_a_difference_to_the_samples_is_found(shared_pair, run, serve, token, command):
    """Of methods whose samples are no single probes (printed_samples.py)."""
    a, b = shared_pair
    serve(b, "--token-file", token, "--udpstp-port", 24601)
    first, *words = command.split()
    words = [*words[:1], b.address, *words[1:]] if first in ("flow", "ppt") else [b.address, *words]
    objects = run(a, first, *words, *SHORT[first], *([] if first == "trace" else ["--token-file", token]))
    assert not list(disagreements(objects))
    for figure in OTHERS[command]:
        planted = json.loads(json.dumps(objects))
        *way, name = (int(one) if one.isdigit() else one for one in figure.split("."))
        of = planted[-1]
        for one in way:
            of = of[one]
        of[name] += 1
        assert list(disagreements(planted)), figure


@pytest.mark.parametrize(("command", "figures"), [("ping", FIGURES), ("stamp", (*FIGURES, *MORE))])
def test_a_difference_in_the_last_digit_is_found(shared_pair, run, serve, command, figures):
    a, b = shared_pair
    serve(b)
    objects = run(a, command, b.address, "--interval", "1ms", "--count", 200)
    assert not list(disagreements(objects))
    for figure in figures:
        planted = json.loads(json.dumps(objects))
        *way, name = figure.split(".")
        of = planted[-1][way[0]] if way else planted[-1]
        of[name] = round(of[name] + 0.001, 3) if way else of[name] + 1
        assert list(disagreements(planted)), figure
    end = objects[-1]
    end["verdict"] = "degraded"
    end["reasons"] = [{"id": "late", "text": "", "severity": "degraded", "cause": "host_cpu", "late": end["late"] + 1}]
    assert list(disagreements(objects)) == [f"{command}: late: {end['late'] + 1} in the reason late, {end['late']} in the end object"]


STATEMENTS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {  # the change of an end object, and a part of the text
    "a verdict without its reason": (lambda end: end.update(verdict="degraded"), "makes it valid"),
    "valid, beside a reason": (lambda end: end.update(reasons=[{"id": "late", "text": "", "severity": "invalid"}]), "makes it invalid"),
    "valid, and a bound is too wide": (lambda end: end["bounds"][0].update(bound=1e6), "valid, and rtt_p50"),
    "valid, and an error has no bound": (lambda end: end["bounds"][0].update(bound=None), "has the bound None"),
    "another value is judged": (lambda end: end["bounds"][0].update(value=5e6), "bounds: rtt_p50 is 5000000.0"),
    "more lost than sent": (lambda end: end.update(lost=end["sent"] + 1), "lost: 201 of 200 sent"),
    "a time below 0": (lambda end: end["rtt_us"].update(min=-1.0), "a time of -1.0 us"),
    "quantiles in another order": (lambda end: end["lateness_us"].update(p99=end["lateness_us"]["max"] + 1), "are not in ascending order"),
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_against_a_figure_is_found(shared_pair, run, statement):
    a, b = shared_pair
    objects = run(a, "ping", b.address, "--interval", "1ms", "--count", 200)
    objects[-1].update(verdict="valid", reasons=[])  # on a busy machine it may be another one
    for one in objects[-1]["bounds"]:
        one["bound"] = 0.0
    assert not list(disagreements(objects))
    change, words = STATEMENTS[statement]
    change(objects[-1])
    assert any(words in text for text in disagreements(objects)), list(disagreements(objects))
