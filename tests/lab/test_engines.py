# SPDX-License-Identifier: MIT OR Apache-2.0
"""This build's command and its engines inside the devices."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from inside import run
from ktrxer_lab.pytest_plugin import in_device

DEVICES = ("pc", "phone", "router")
ENGINES = ("udp", "raw", "packet", "xsk")


def in_near(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(["ip", "netns", "exec", "near", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def send_on_time(command: str, engine: str, folder: Path) -> tuple[list[float], str]:
    """E2: 100 intervals of 10 ms; the difference of each interval between send stamps from 10 ms, sorted, in us. And the account's sources of departures."""
    reports = folder / "reports.csv"
    send = in_near(*(command, "send", "--engine", engine, "--device", "wire", "10.9.0.2", "--port", "9", "--payload", "100", "--count", "101"),
                   *("--interval", "10ms", "--json", "--reports", str(reports)))
    result, errors = send.communicate()
    assert result, errors
    account = json.loads(result)
    for reason in account["reasons"]:
        if "does not work here" in reason["text"]:
            pytest.skip(f"{os.environ['KTRXER_LAB_DEVICE']}: {reason['text']}")
    assert account["sent"] == account["requested"] == 101
    head, *rows = [line.split(",") for line in reports.read_text().splitlines()]
    column = head.index("sent_ns")
    sent = [int(row[column]) for row in rows]
    assert len(sent) == 101
    return sorted(abs(sent[i + 1] - sent[i] - 10_000_000) / 1000 for i in range(100)), str(account["departure_stamp"])


def told(what: str, off: list[float], departures: str) -> None:
    print(f"{what} {os.environ['KTRXER_LAB_DEVICE']}: {off[50]:.2f} / {off[75] - off[25]:.2f} us; worst {off[-1]:.1f} us; departures {departures}")


@in_device(*DEVICES)
def test_the_command_finds_its_engines(command: str) -> None:
    engines = {engine["name"]: engine["available"] for engine in json.loads(run(command, "doctor", "--json"))["engines"]}
    assert engines["udp"] and engines["raw"] and engines["packet"]


@in_device(*DEVICES)
@pytest.mark.parametrize("engine", ENGINES)
def test_e2_probes_leave_on_time(pair: None, command: str, engine: str, tmp_path: Path) -> None:
    run("ip", "netns", "exec", "near", "ping", "-c", "1", "-q", "10.9.0.2")
    off, departures = send_on_time(command, engine, tmp_path)
    told(f"E2 {engine}", off, departures)
    assert off[50] < 50


@in_device(*DEVICES, slow=DEVICES)
@pytest.mark.parametrize("engine", ENGINES)
def test_e2_beside_cross_traffic(pair: None, command: str, engine: str, tmp_path: Path) -> None:
    """Beside 12000 packets/s at random moments on the same link, from a fixed seed."""
    run("ip", "netns", "exec", "near", "ping", "-c", "1", "-q", "10.9.0.2")
    cross = in_near(*(command, "send", "--engine", "udp", "10.9.0.2", "--port", "9", "--payload", "100", "--rate", "12k", "--model", "poisson"),
                    *("--seed", "07", "--for", "60s", "--no-realtime", "--json"))
    try:
        time.sleep(0.2)
        off, departures = send_on_time(command, engine, tmp_path)
        cross.send_signal(signal.SIGINT)
        account, errors = cross.communicate(timeout=30)
    finally:
        cross.kill()
        cross.communicate()
    rate = json.loads(account)["rate_pps"] if account else 0.0
    print(f"cross traffic: {rate:.0f} packets/s")
    assert rate > 10_000, (account, errors)
    told(f"E2 beside cross traffic {engine}", off, departures)
    assert off[50] < 1000
