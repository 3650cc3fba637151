# SPDX-License-Identifier: MIT OR Apache-2.0
"""
`ktrxer trace --load` names the queue that fills, at any place of tbf. tests/virtual/test_trace_load.py checks its delay.

a ---10.71.0.0/24--- r1 ---10.72.0.0/24--- r2 ---10.73.0.0/24--- b      A traces, B serves
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from flows import secret
from ktrxer_lab import hosts
from recorded import wrong

RATE_MBIT, LIMIT_BYTES = 20, 100_000
FULL_US = LIMIT_BYTES * 8 / RATE_MBIT
TBF = ["tbf", "rate", f"{RATE_MBIT}mbit", "burst", "5000", "limit", str(LIMIT_BYTES)]
FAR = "10.73.0.2"


@dataclass
class Line:
    a: hosts.Netns
    r1: hosts.Netns
    r2: hosts.Netns
    b: hosts.Netns

    @contextlib.contextmanager
    def shaped(self, host: hosts.Netns, device: str) -> Iterator[None]:
        host.run(["tc", "qdisc", "add", "dev", device, "root", *TBF])
        try:
            yield
        finally:
            host.run(["tc", "qdisc", "del", "dev", device, "root"])


@pytest.fixture(scope="module")
def line(requires_namespaces: None) -> Iterator[Line]:
    with hosts.Netns("a") as a, hosts.Netns("r1") as r1, hosts.Netns("r2") as r2, hosts.Netns("b") as b:
        ends = [(a, r1), (r1, r2), (r2, b)]
        for net, (near, far) in enumerate(ends, 71):
            hosts.join(near, far, net=net, devices=(f"d{net}", f"u{net}"))
            near.run(["ethtool", "-K", f"d{net}", "tso", "off", "gso", "off", "gro", "off"])
            far.run(["ethtool", "-K", f"u{net}", "tso", "off", "gso", "off", "gro", "off"])
        for host in (a, r1, r2, b):
            host.sysctl("ipv4/ip_forward", 1)
            host.sysctl("ipv4/icmp_ratelimit", 0)
        a.ip("route", "add", "default", "via", "10.71.0.2")
        r1.ip("route", "add", "10.73.0.0/24", "via", "10.72.0.2")
        r2.ip("route", "add", "10.71.0.0/24", "via", "10.72.0.1")
        b.ip("route", "add", "default", "via", "10.73.0.1")
        yield Line(a, r1, r2, b)


def command(ktrxer: Any, token: Any, direction: str, *options: str) -> list[Any]:
    return [ktrxer, "trace", FAR, "--load", direction, "--load-for", "500ms", "--interval", "20ms", "--token-file", token, *options]


@pytest.fixture
def load(ktrxer, line, serve, token):
    def go(direction: str, *options: str) -> list[dict[str, Any]]:
        serve(line.b, "--token-file", token)
        done = line.a.run(command(ktrxer, token, direction, "--jsonl", *options), check=False)
        assert done.stdout, done.stderr
        return [json.loads(one) for one in done.stdout.splitlines()]

    return go


@pytest.mark.parametrize(
    ("direction", "where", "device", "hop"),
    [("up", "r2", "d73", 3), ("up", "r1", "d72", 2), ("down", "r2", "u72", 2), ("both", "b", "u73", 3), ("up", "a", "d71", 0)],
)
def test_the_queue_that_fills_is_named(line, load, direction, where, device, hop):
    with line.shaped(getattr(line, where), device):
        objects = load(direction)
    assert not wrong(objects)
    result = objects[-1]["load"]
    assert result["queue_before_hop"] == hop, result
    queues = {one["hop"]: one for one in result["hops"]}
    assert queues[hop]["fills"] and 0.2 * FULL_US < queues[hop]["queue_us"] < 1.2 * FULL_US, result
    # All hops behind the queue have its delay; those before it do not.
    for number, one in queues.items():
        if number:
            assert (one["added_us"] > 0.2 * FULL_US) == (number >= hop), result
    ways = ("up", "down") if direction == "both" else (direction,)
    assert [way for way in ("up", "down") if way in result] == list(ways)
    assert all(result[way]["bit_s"] > 0 and result[way]["flows"] == 4 for way in ways)
    stages = [one for one in objects if one.get("kind") == "hop_answer" and one["stage"] != "search"]
    assert {one["repetition"] for one in stages if one["stage"] == "repeat"} == set(range(25))
    assert {one["repetition"] for one in stages if one["stage"] == "loaded"} <= set(range(25))
    assert sum(one["stage"] == "loaded" for one in stages) == sum(one["loaded_answers"] for number, one in queues.items() if number)


def test_probes_that_do_not_wait_with_the_flows_degrade_the_result(line, load):
    """The engine packet bypasses the queue of this host's device, like probes that fq_codel of a router puts into another queue."""
    with line.shaped(line.a, "d71"):
        end = load("up", "--engine", "packet")[-1]
    assert end["load"]["queue_before_hop"] is None
    assert end["verdict"] == "degraded" and any("do not wait in the queue of the flows" in one["text"] for one in end["reasons"]), end["reasons"]


@pytest.mark.plain_build
def test_a_queue_before_a_hop_with_too_few_answers_is_not_blamed_on_the_routers(ktrxer, line, serve, token):
    """Linux limits the answers of a host to one a second after the first six, so the far end answers too few probes for an interval."""
    serve(line.b, "--token-file", token)
    line.b.sysctl("ipv4/icmp_ratelimit", 1000)
    try:
        with line.shaped(line.r2, "d73"):
            text = line.a.run(command(ktrxer, token, "up"), check=False).stdout
    finally:
        line.b.sysctl("ipv4/icmp_ratelimit", 0)
    assert "no queue fills before hop 3: none adds more than its uncertainty" in text, text
    assert "hop 3 answered fewer than 8 probes: the queue may be before that hop. Give a longer --load-for, or --protocol icmp" in text, text
    assert "do not wait in the queue of the flows" not in text, text


@pytest.mark.plain_build
def test_text(ktrxer, line, serve, token):
    serve(line.b, "--token-file", token)
    with line.shaped(line.r2, "d73"):
        text = line.a.run(command(ktrxer, token, "up"), check=False).stdout
    assert "load up: 4 flows of TCP" in text, text
    assert "the queue that fills: between hop 2 (10.72.0.2) and hop 3 (10.73.0.2)" in text, text
    (row,) = [one.split() for one in text.splitlines() if one.endswith("fills")]
    assert row[:2] == ["3", FAR]


def test_a_server_that_stops_ends_the_load(ktrxer, line, serve, token):
    server = serve(line.b, "--token-file", token)
    trace = line.a.popen(command(ktrxer, token, "up", "--jsonl", "--load-for", "1s"))
    assert trace.stdout
    lines = list[str]()
    for one in trace.stdout:
        lines.append(one)
        if '"loaded"' in one and server.process.poll() is None:
            server.process.kill()
            server.process.wait()
    end = json.loads(lines[-1])
    assert trace.wait() == 3 and end["verdict"] == "degraded" and end["load"]["ended_early"]
    assert any("the load ended early" in one["text"] for one in end["reasons"]), end["reasons"]


def test_stopped_before_the_load(ktrxer, line, serve, token):
    serve(line.b, "--token-file", token)
    trace = line.a.popen([*command(ktrxer, token, "up", "--jsonl", "--load-for", "3s"), "--stop-on-eof"], stdin=-1)
    assert trace.stdout and trace.stdin
    lines = list[str]()
    for one in trace.stdout:
        lines.append(one)
        if '"repeat"' in one and not trace.stdin.closed:
            trace.stdin.close()
    end = json.loads(lines[-1])
    assert end["verdict"] == "degraded" and "load" not in end, "it did not wait for the load"


def test_what_is_refused(ktrxer, line, token, tmp_path):
    def go(*options: str, key: Any = token) -> Any:
        return line.a.run([*command(ktrxer, key, "up"), *options], check=False)

    assert go("--load-for", "50ms").returncode == 2
    assert go(key=secret(tmp_path / "short", "short")).returncode == 2
    absent = go("--json")
    result = json.loads(absent.stdout)
    assert absent.returncode == 3 and result["reasons"][0]["id"] == "refused"
    assert result["arrived"] and "load" not in result
