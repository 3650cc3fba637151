# SPDX-License-Identifier: MIT OR Apache-2.0
"""Paths with round trips of 600 ms and 2 % of loss, of 1.2 s and of 3 s: each command has its result, and no probe that meets a load is idle."""

from __future__ import annotations

import json
from typing import Any

import pytest
from guests import FOR_RUNS, Lab

FILE = """
hosts = ["client", "server"]
routers = ["hub"]
[[links]]
ends = ["client", "hub"]
rate = "10mbit"
delay = "{half}ms"
loss = "{loss}%"
[[links]]
ends = ["hub", "server"]
"""
PATHS = pytest.mark.parametrize(("trip_ms", "loss"), [(600, 1), (1200, 0), (3000, 0)])  # the loss is that of each direction
TO = "--token-file token"
PROBES = {"ping": "ping -i 50ms -c 100", "stamp": "stamp -i 50ms -c 100", "trace": "trace", "owamp": "owamp -c 20",
          "capacity": f"capacity --direction up --for 5s {TO}"}  # fmt: skip
DEAD = {"ping": "ping -c 1", "stamp": "stamp -c 1", "trace": "trace"}
RUN = f"-H server {TO} -D runs --no-extras --json"


def printed(lab: Lab, trip_ms: int, loss: int, commands: dict[str, str], timeout: float = 220, serve: str = "") -> dict[str, Any]:
    """The object that each command prints, one after the other in one guest."""
    lab.environment |= FOR_RUNS
    lab.write_token()
    (lab.folder / "runs").mkdir()
    (lab.folder / "net.toml").write_text(FILE.format(half=trip_ms // 2, loss=loss))
    job = "\n".join(f"{words} >{name}.json 2>{name}.err; echo $? >{name}.status" for name, words in commands.items())
    beside = f"server=ktrxer serve --quiet --token-file token {serve}".rstrip()
    done = lab("run", "./net.toml", "--time", "virtual", "--beside", beside, "--", "sh", "-c", job, timeout=timeout)
    assert done.returncode == 0, done.stderr
    made = {}
    for name in commands:
        text, error = ((lab.folder / f"{name}.{kind}").read_text() for kind in ("json", "err"))
        assert text, f"{name}: {error}"
        made[name] = json.loads(text) | {"status": int((lab.folder / f"{name}.status").read_text())}
    return made


def idle_ms(made: dict[str, Any], kind: str) -> dict[str, Any]:
    (row,) = [row for row in made["summary"]["latency"] if (row["name"], row["probes"]) == ("round trip", kind)]
    return dict(row["idle"])


@PATHS
def test_flows_are_counted_at_both_ends(lab: Lab, trip_ms: int, loss: int) -> None:
    flows = {f"{kind}-{way}": f"ktrxer flow {way} server {words} {TO} --json"
             for kind, words in (("tcp", "--for 10s"), ("udp", "-u -b 800k --for 5s")) for way in ("up", "down")}  # fmt: skip
    for name, made in printed(lab, trip_ms, loss, flows).items():
        (one,) = made["flows"]
        assert made["status"] == 0 and made["verdict"] == "valid", (name, made["reasons"])
        if name.startswith("udp"):
            assert one["bytes"] * 8e9 / one["duration_ns"] == pytest.approx(800e3 * (1 - loss / 100), rel=0.03), name
            assert one["lost"] + one["received_packets"] == one["sent_packets"], name
        else:
            assert one["bytes"] > 90_000, name


@PATHS
def test_a_run_and_a_check_have_results(lab: Lab, trip_ms: int, loss: int) -> None:
    """The limits of trials were 12 s, and those of connections before the load 3 s: both shorter than the round trips that both take."""
    commands = {
        "up": f"ktrxer run tcp_upload --for 12s {RUN}",
        "rrul": f"ktrxer run rrul --for 12s {RUN}",
        "check": f"ktrxer check --server server {TO} -D runs --hops 0 --json",
    }
    made = printed(lab, trip_ms, loss, commands)
    for name in ("up", "rrul"):
        assert made[name]["status"] in (0, 3), name
        unexpected = {one["id"] for one in made[name]["reasons"]} - {"own_load"}
        assert not unexpected, (name, made[name]["reasons"])
        assert all(row["mean_mbps"] > 0.03 for row in made[name]["summary"]["throughput"]), name
    for name, kind in (("up", "ICMP"), ("rrul", "ICMP"), ("rrul", "UDP")):
        idle = idle_ms(made[name], kind)
        assert idle["p50"] == pytest.approx(trip_ms, abs=0.5) and (loss or idle["p99"] == pytest.approx(trip_ms, abs=0.5)), (name, idle)
    check = made["check"]
    assert check["status"] in (0, 3) and check["idle_ms"]["p50"] == pytest.approx(trip_ms, abs=0.5), check
    assert loss or check["idle_ms"]["p99"] == pytest.approx(trip_ms, abs=0.5), check
    assert {load["direction"] for load in check["loads"]} == {"up", "down"} and check["grade"]["letter"]


@pytest.mark.parametrize("trip_ms", [1200, 3000])
def test_defaults_wait_for_the_round_trip(lab: Lab, trip_ms: int) -> None:
    """Without --timeout: they gave up after one to three seconds. The dead host shares the network of the server."""
    commands = {f"{name}{six}": f"ktrxer {words} server{six} --json" for six in ("", "-6") for name, words in PROBES.items()}
    commands |= {f"{name}-dead": f"ktrxer {words} 10.64.2.77 --json" for name, words in DEAD.items()}
    made = printed(lab, trip_ms, 1, commands, serve="--udpstp-port 24601 --owamp-port 861")
    before_ns = 0
    for name, end in made.items():
        took_s = (end["end_ns"] - before_ns) / 1e9
        before_ns = end["end_ns"]
        print("figure:", name, end["status"], took_s, end["verdict"], [one["id"] for one in end["reasons"]])
        if name.endswith("-dead"):
            assert end["status"] in (1, 3) and took_s < (16 + 0.004 * trip_ms if name.startswith("trace") else 7), (name, took_s)
        elif name.startswith(("ping", "stamp")):
            assert end["status"] == 0 and not end["too_late"] and end["received"] > 0.9 * end["sent"], (name, end["reasons"])
        elif name.startswith("trace"):
            assert end["arrived"] and "trace_too_late" not in {one["id"] for one in end["reasons"]}, (name, end["reasons"])
        elif name.startswith("owamp"):
            assert {one["id"] for one in end["reasons"]} <= {"bound_wide"}, (name, end["reasons"])
        else:
            assert not {one["id"] for one in end["reasons"]} & {"capacity_ended", "capacity_silent"}, (name, end["reasons"])


def test_no_idle_probe_meets_the_load(lab: Lab) -> None:
    """Of 500 idle probes of a path of 100 ms the last ten were on their way when the load began: a fiftieth of them, and so the p99."""
    made = printed(lab, 100, 0, {"up": f"ktrxer run tcp_upload --for 8s -i 10ms {RUN}"})["up"]
    idle = idle_ms(made, "ICMP")
    assert idle["p99"] == pytest.approx(100, abs=0.5) and idle["max"] == pytest.approx(100, abs=0.5), idle
    assert 480 <= idle["count"] <= 490, "those of five seconds but for a round trip"
