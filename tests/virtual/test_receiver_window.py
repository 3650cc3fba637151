# SPDX-License-Identifier: MIT OR Apache-2.0
"""Flows that a socket of a host limits do not fill the path: a grade of the delay that this load adds would be false.
Reference: the path's rate of 50 Mbit/s, and tcp_rmem and tcp_wmem of both hosts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from guests import FOR_RUNS, Lab

HERE = Path(__file__).parent
TIMES = ("-H", "server", "--for", "8", "--delay", "2", "-i", "50ms", "--no-extras", "--json", "-D", ".")
WAYS = ("up", "down")
RECEIVER = ": the window of its socket (tcp_rmem) was full in 1 of 1 flows, and the path had no queue: the path may carry more"
SENDER = ": the send buffer of its socket (tcp_wmem) was too small in 1 of 1 flows: all its data was sent, and both windows had room: the path may carry more"


def results(folder: Path, *settings: str) -> list[Any]:
    """Of an upload and a download, while each host has the sysctl commands `settings`."""
    lab = Lab(folder, FOR_RUNS)
    (lab.folder / "words").write_text(json.dumps([("run", f"tcp_{way}load", *TIMES) for way in WAYS]))
    path = ("--set", "rate=50mbit", "--set", "delay=25ms", "--set", "leaf=pfifo limit 500")
    before = "".join(f"echo {value} >/proc/sys/net/ipv4/{name}; " for name, value in (one.split("=") for one in settings))
    done = lab("run", "flent", "--time", "virtual", *path, "--beside", f"server={before}exec ktrxer serve", "--",
               "sh", "-c", f"{before}exec {sys.executable} {HERE / 'several.py'} words", timeout=400)  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = [json.loads((lab.folder / f"{number}.out").read_text()) for number in range(len(WAYS))]
    for one in made:
        print("figure:", one["summary"]["throughput"][0]["mean_mbps"], one["verdict"], one["reasons"], one["summary"].get("grade"))
    return made


def check(made: list[Any], reasons: tuple[str, str], most_mbps: float) -> None:
    for one, reason in zip(made, reasons, strict=True):
        assert one["summary"]["throughput"][0]["mean_mbps"] < most_mbps, "the reference"
        assert any(reason in each["text"] for each in one["reasons"])
        assert one["verdict"] == "degraded" and one["summary"].get("grade") is None


def test_a_receivers_window_is_named_and_gives_no_grade(tmp_path: Path) -> None:
    made = results(tmp_path, "tcp_rmem=4096 131072 131072")
    check(made, ("up: limited by the server" + RECEIVER, "down: limited by this host" + RECEIVER), 25)
    assert not any("tcp_wmem" in reason["text"] for one in made for reason in one["reasons"])


def test_a_senders_buffer_is_named_and_gives_no_grade(tmp_path: Path) -> None:
    made = results(tmp_path, "tcp_wmem=4096 16384 131072")
    check(made, ("up: limited by this host" + SENDER, "down: limited by the server" + SENDER), 40)
    assert not any("tcp_rmem" in reason["text"] for one in made for reason in one["reasons"])


# The largest rate of data times the shortest round trip is 290,000 bytes. A window of 310,000 bytes is full all the time, and so is the path:
# data that the receiver has not acknowledged yet takes 11,000 bytes of it, and the rest is 1.03 times what the path holds.
NARROW = ("tcp_rmem=4096 131072 500000",)


@pytest.mark.parametrize("settings", [(), ("tcp_wmem=4096 16384 1048576", "tcp_rmem=4096 131072 33554432"), NARROW])
def test_a_path_that_is_full_has_a_grade(tmp_path: Path, settings: tuple[str, ...]) -> None:
    for one in results(tmp_path, *settings):
        assert one["summary"]["throughput"][0]["mean_mbps"] > 40, "the reference"
        assert one["verdict"] == "valid" and one["summary"]["grade"]
