# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command with the module loaded: engine `module` beside the others, in E2, pairs and bursts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from inside import run
from ktrxer.lab.pytest_plugin import in_device
from module_help import MODULE, complaints, unload
from test_engines import DEVICES, command, in_near, send_on_time, told

__all__ = ["command"]
NEAR = ("ip", "netns", "exec", "near")
TO = ("--device", "wire", "--to", "10.9.0.2:9")


@pytest.fixture
def loaded(pair: None, command: str) -> Iterator[str]:
    run("dmesg", "-c")
    run("insmod", "/root/ktrxer.ko")
    run(*NEAR, "ping", "-c", "1", "-q", "10.9.0.2")
    try:
        yield command
    finally:
        unload()
    assert complaints() == []


def send(command: str, *words: str) -> dict[str, object]:
    sender = in_near(command, "send", *TO, *words, "--json")
    result, errors = sender.communicate()
    assert result, errors
    account: dict[str, object] = json.loads(result)
    assert account["requested"] == sum(int(str(account[name])) for name in ("sent", "failed", "skipped", "cancelled"))
    return account


@in_device("pc")
def test_without_the_module_its_line_says_what_to_do(pair: None, command: str) -> None:
    (engine,) = [one for one in json.loads(run(*NEAR, command, "doctor", "--device", "wire", "--json"))["engines"] if one["name"] == "module"]
    assert not engine["available"] and "modprobe ktrxer" in engine["reason"]
    refused = in_near(command, "send", "--engine", "module", *TO, "--count", "1")
    assert "modprobe ktrxer" in refused.communicate()[1] and refused.returncode


@in_device(*DEVICES, modules=MODULE)
def test_the_command_sends_by_it_and_auto_takes_it(loaded: str) -> None:
    account = send(loaded, "--payload", "100", "--count", "50", "--interval", "1ms")
    assert account["engine"] == "module" and account["sent"] == 50 and account["proof"] == {"wire": 0, "driver": 50, "queued": 0}
    account = send(loaded, "--engine", "module", "--payload", "28", "--count", "2000")  # for rate
    assert account["sent"] == account["tries"] == 2000
    account = send(loaded, "--engine", "module", "--train", "10", "--count", "100", "--interval", "2ms", "--payload", "28")
    assert account["sent"] == 100


@in_device(*DEVICES, modules=MODULE)
def test_e2_beats_the_other_engines(loaded: str, tmp_path: Path) -> None:
    """Idle: never worse than what user space does, by more than 0.1 us (issue 8)."""
    medians = {}
    for engine in ("module", "packet", "raw"):
        off, proof = send_on_time(loaded, engine, tmp_path)
        told(f"E2 {engine}", off, proof)
        medians[engine] = off[50]
    assert medians["module"] <= min(medians.values()) + 0.1


@in_device(*DEVICES, modules=MODULE, slow=("phone",))
def test_e2_beside_cross_traffic(loaded: str, tmp_path: Path) -> None:
    """Beside 12000 packets/s that this machine sends at random moments, from a fixed seed: half of what user space does, or less."""
    words = ("send", "--engine", "udp", "--to", "10.9.0.2:9", "--payload", "100", "--rate", "12k", "--poisson", "--seed", "07")
    cross = in_near(loaded, *words, "--for", "60s", "--sleep", "--no-realtime", "--json")
    off = {}
    try:
        for engine in ("module", "packet"):
            off[engine], proof = send_on_time(loaded, engine, tmp_path)
            told(f"E2 beside cross traffic {engine}", off[engine], proof)
            assert cross.poll() is None, cross.communicate()
    finally:
        cross.kill()
        cross.communicate()
    p95 = {engine: values[95] for engine, values in off.items()}
    print(f"{os.environ['KTRXER_LAB_DEVICE']}: p95 {p95}")
    assert off["module"][50] <= max(off["packet"][50] / 2, 0.1) and p95["module"] <= max(p95["packet"] / 2, 0.2)


@in_device(*DEVICES, modules=MODULE)
def test_o3_pairs_leave_closer_together_than_a_raw_sockets(loaded: str, tmp_path: Path) -> None:
    gaps = {}
    for engine in ("module", "packet", "raw"):
        reports = tmp_path / "pairs.csv"
        send(loaded, "--engine", engine, "--train", "2", "--count", "200", "--interval", "1ms", "--payload", "12", "--reports", str(reports))
        head, *rows = [line.split(",") for line in reports.read_text().splitlines()]
        sent = [int(row[head.index("sent_ns")]) for row in rows]
        between = sorted(sent[i + 1] - sent[i] for i in range(0, 200, 2))
        gaps[engine] = between[50]
    print(f"O3 {os.environ['KTRXER_LAB_DEVICE']}: {gaps} ns")
    assert gaps["module"] <= gaps["raw"]
