# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command with the module loaded: engine `module` beside the others, in E2, pairs and bursts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import figures_job as job
import pytest
from inside import run
from ktrxer_lab.pytest_plugin import in_device
from module_help import MODULE, kernel_warnings, unload
from test_engines import DEVICES, in_near, send_on_time, told

NEAR = ("ip", "netns", "exec", "near")
TO = ("--device", "wire", "10.9.0.2", "--port", "9")


@pytest.fixture
def loaded(pair: None, command: str) -> Iterator[str]:
    run("dmesg", "-c")
    run("insmod", "/root/ktrxer.ko")
    run(*NEAR, "ping", "-c", "1", "-q", "10.9.0.2")
    try:
        yield command
    finally:
        unload()
    assert kernel_warnings() == []


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
    assert account["engine"] == "module" and account["sent"] == 50 and account["departure_stamp"] == {"nic": 0, "driver": 50, "queued": 0}
    account = send(loaded, "--engine", "module", "--payload", "28", "--count", "2000")  # for rate
    assert account["sent"] == account["tries"] == 2000
    account = send(loaded, "--engine", "module", "--train", "10", "--count", "100", "--interval", "2ms", "--payload", "28")
    assert account["sent"] == 100
    # A rate of 100 kpps, of which half a second does not fit into the router: no more slots than probes.
    assert send(loaded, "--engine", "module", "--train", "100", "--count", "100", "--interval", "1ms", "--payload", "1428")["sent"] == 100


@in_device("phone", "router", modules=MODULE, slow=("router",))
@pytest.mark.parametrize("timer", ["1", "2"])
def test_on_one_processor_nobody_waits_for_whom_he_keeps_from_running(loaded: str, timer: str) -> None:
    """A real-time waiter gets reports while another thread still commits probes: that thread must get the processor (decision 31)."""
    Path("/sys/module/ktrxer/parameters/timer").write_text(timer)
    account = send(loaded, "--engine", "module", "--rate", "50k", "--count", "3000", "--payload", "28")
    assert int(str(account["sent"])) + int(str(account["failed"])) == 3000
    assert int(str(account["duration_ns"])) < 400_000_000, account["duration_ns"]  # 60 ms; with a stop by the scheduler a second


@in_device("phone", modules=MODULE)
@pytest.mark.parametrize("rate", ["38k", "50k"])
def test_the_thread_gives_way_before_a_backlog_is_full(loaded: str, rate: str) -> None:
    """Probes 20 us apart on one processor: the far end's backlog of 1000 packets is not processed while the thread spins (decision 31)."""
    Path("/sys/module/ktrxer/parameters/timer").write_text("2")
    account = send(loaded, "--engine", "module", "--rate", rate, "--count", "5000", "--payload", "28")
    print(f"{rate}: {account['failed']} failed, lateness {account['lateness_us']} us")
    assert account["sent"] == 5000


@in_device(*DEVICES, modules=MODULE)
def test_e2_beats_the_other_engines(loaded: str, tmp_path: Path) -> None:
    """Without load: at most 0.1 us worse than sending from user space."""
    medians = {}
    for engine in ("module", "packet", "raw"):
        off, departures = send_on_time(loaded, engine, tmp_path)
        told(f"E2 {engine}", off, departures)
        medians[engine] = off[50]
    assert medians["module"] <= min(medians.values()) + 0.1


@in_device(*DEVICES, modules=(*MODULE, "traffic"), slow=("pc", "phone"))
def test_e2_beside_cross_traffic(loaded: str) -> None:
    """Beside 24000 packets/s that the machine routes, at random moments from a fixed seed: at most half of user space's error, in median and p95."""
    job.make_way_for_cross_traffic()
    senders = [sender for sender in (*job.TIMING, *job.VARIANTS) if sender.name in ("module", "module, thread", "module, thread, guard", "packet")]
    judge = job.Judge()
    with job.loaded(job.Load(24000)) as load:
        rows = {sender.name: job.e2(judge, sender, load, job.Sending(201, 2000, 100)) for sender in senders}
    print(f"{os.environ['KTRXER_LAB_DEVICE']}: {rows}")
    for row in rows.values():
        assert float(str(row["cross_pps"])) > 22_000 and not row["lost"], row
    for figure in ("median", "p95"):
        of = {name: float(str(row[figure])) for name, row in rows.items()}
        assert of["module"] <= max(of["packet"], 0.1), (figure, of)
        assert of["module, thread, guard"] <= max(of["packet"] / 2, 0.1), (figure, of)
    # The gain of the guard, which the administrator may allow. A count, because a few interrupts that overlap a probe move the p95.
    late = {name: len(found) for name, row in rows.items() if isinstance(found := row.get("late_us"), list)}
    assert late["module, thread, guard"] <= max(late["module, thread"] / 2, 4), late


@in_device(*DEVICES, modules=MODULE)
def test_o3_pairs_leave_closer_together_than_a_raw_sockets(loaded: str, tmp_path: Path) -> None:
    gaps = {}
    for engine in ("module", "packet", "raw"):
        reports = tmp_path / "pairs.csv"
        send(loaded, "--engine", engine, "--train", "2", "--count", "200", "--interval", "1ms", "--payload", "12", "--reports", str(reports))
        head, *rows = [line.split(",") for line in reports.read_text().splitlines()]
        sent = [int(row[head.index("departure_ns")]) for row in rows]
        between = sorted(sent[i + 1] - sent[i] for i in range(0, 200, 2))
        gaps[engine] = between[50]
    print(f"O3 {os.environ['KTRXER_LAB_DEVICE']}: {gaps} ns")
    assert gaps["module"] <= gaps["raw"]


# Prints the kernel's stamps of so many UDP packets to port 9 that arrive on `wire`.
EAR = """
import socket, struct, sys, time
ear = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
ear.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE
ear.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS_OLD
ear.bind(("wire", 0x0800))
ear.settimeout(3)
print("ready", flush=True)
stamps = []
while len(stamps) < int(sys.argv[1]):
    data, notes, _, _ = ear.recvmsg(2000, 64)
    if data[23] == 17 and data[36:38] == b"\\0\\x09":
        seconds, nanoseconds = struct.unpack("@ll", notes[0][2][:struct.calcsize("@ll")])
        stamps.append(seconds * 10**9 + nanoseconds)
print(*stamps)
"""


def train_rate(send_it: tuple[str, ...], count: int = 100) -> float:
    """Packets a second between the first and the last of a train, as they arrive."""
    ear = subprocess.Popen(["ip", "netns", "exec", "far", sys.executable, "-c", EAR, str(count)], stdout=subprocess.PIPE, text=True)
    assert ear.stdout is not None and ear.stdout.readline() == "ready\n"
    run(*NEAR, *send_it)
    stamps = [int(word) for word in ear.communicate()[0].split()]
    assert len(stamps) == count
    return (count - 1) * 1e9 / (stamps[-1] - stamps[0])


def pktgen(payload: int) -> tuple[str, ...]:
    near = json.loads(run("ip", "-n", "far", "-j", "link", "show", "wire"))[0]["address"]
    words = [f"count 100;clone_skb 0;pkt_size {payload + 42};dst 10.9.0.2;src_min 10.9.0.1;dst_mac {near};udp_dst_min 9;udp_dst_max 9;delay 0"]
    script = "cd /proc/net/pktgen; echo rem_device_all > kpktgend_0; echo add_device wire > kpktgend_0; "
    script += "".join(f"echo {word} > wire; " for word in words[0].split(";")) + "echo start > pgctrl"
    return ("sh", "-c", script)


@in_device(*DEVICES, modules=MODULE, slow=("phone", "router"))
def test_e1_trains_of_100_at_the_receiver(loaded: str) -> None:
    engines = ("module", "packet", "raw", "udp")
    run("modprobe", "pktgen")
    rates: dict[str, float] = {}
    for payload in (28, 1428):
        for engine in engines:
            words = (loaded, "send", "--engine", engine, *TO, "--payload", str(payload), "--count", "100", "--train", "100", "--quiet")
            rates[engine] = train_rate(words)
        rates["pktgen"] = train_rate(pktgen(payload))
        print(f"E1 {os.environ['KTRXER_LAB_DEVICE']} {payload}: " + ", ".join(f"{name} {rate / 1000:.0f} kpps" for name, rate in rates.items()))
        assert rates["module"] >= rates["raw"] * (3 if payload == 28 else 1)
        assert rates["module"] >= 0.8 * rates["pktgen"] or os.environ["KTRXER_LAB_DEVICE"] != "pc"
