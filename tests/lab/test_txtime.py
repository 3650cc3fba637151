# SPDX-License-Identifier: MIT OR Apache-2.0
"""The txtime engine on a kernel with the queues for launch times, fq and etf, which this host's kernel may lack."""

from __future__ import annotations

import csv
import itertools
import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from inside import run
from ktrxer_lab.pytest_plugin import in_device

DEVICES = ("pc", "phone", "router")
KINDS = ("fq timer_slack 0", "etf clockid CLOCK_TAI delta 500000")
REMEDY = "`tc qdisc replace dev wire root fq timer_slack 0`"
SEND = ("ip", "netns", "exec", "near", "/usr/bin/ktrxer", "send", "--engine", "txtime", "--device", "wire", "10.9.0.2", "--port", "9", "--json")


@pytest.fixture(autouse=True)
def command() -> None:
    if not Path("/usr/bin/ktrxer").exists():
        pytest.skip("no build for this device (make lab-builds)")


@pytest.fixture
def wire(pair: None) -> None:
    run("ip", "netns", "exec", "near", "ping", "-c", "1", "-q", "10.9.0.2")  # etf drops ARP


def queue(*words: str) -> None:
    subprocess.run(["tc", "-n", "near", "qdisc", "del", "dev", "wire", "root"], capture_output=True, check=False)
    if words:
        run("tc", "-n", "near", "qdisc", "add", "dev", "wire", "root", *words)


@dataclass(frozen=True)
class Sent:
    end: dict[str, Any]
    rows: list[dict[str, str]]

    def intervals_off_us(self, interval_us: float) -> list[float]:
        at = [int(row["sent_ns"]) for row in self.rows]
        return sorted(abs((b - a) / 1000 - interval_us) for a, b in itertools.pairwise(at))

    def lateness_us(self) -> list[float]:
        return sorted(int(row["lateness_ns"]) / 1000 for row in self.rows if row["lateness_ns"])


def send(folder: Path, *words: str, count: int = 101) -> Sent:
    reports = folder / "reports.csv"
    done = subprocess.run([*SEND, "--count", str(count), "--reports", str(reports), *words], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    end = json.loads(done.stdout)
    assert end["requested"] == end["sent"] + end["failed"] + end["skipped"] + end["cancelled"] == count, end
    with reports.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == count
    return Sent(end, rows)


def middle(values: list[float]) -> float:
    return values[len(values) // 2]


@in_device("pc")
def test_a_queue_that_ignores_times_is_refused_with_the_remedy(wire: None) -> None:
    for kind in ("", "pfifo", "netem", "fq_codel"):
        queue(*([kind] if kind else []))
        done = subprocess.run([*SEND, "--count", "1"], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert f"{kind or 'noqueue'}, ignores send times: {REMEDY}" in done.stderr, done.stderr
    queue("etf", "clockid", "CLOCK_TAI", "delta", "300000", "deadline_mode")
    done = subprocess.run([*SEND, "--count", "1"], capture_output=True, text=True, check=False)
    assert "without deadline_mode" in done.stderr, done.stderr
    run("ip", "netns", "exec", "near", *REMEDY.strip("`").split())
    engines = json.loads(run(*SEND[:5], "doctor", "--device", "wire", "--json"))["engines"]
    txtime = next(engine for engine in engines if engine["name"] == "txtime")
    assert txtime["available"] and "kernel-wait" in txtime["features"] and "driver-stamp" in txtime["features"]


def probes_leave_when_their_queue_lets_them(tmp_path: Path, kind: str) -> None:
    queue(*kind.split())
    sent = send(tmp_path, "--interval", "10ms", "--payload", "100")
    assert sent.end["sent"] == sent.end["departure_stamp"]["driver"] == 101, sent.end
    off, late = sent.intervals_off_us(10_000), sent.lateness_us()
    print(f"txtime {kind}: {middle(off):.2f} / {off[75] - off[25]:.2f} us, lateness median {middle(late):.2f}, {late[0]:.1f} to {late[-1]:.1f} us")
    assert middle(off) < 20 and abs(middle(late)) < 20  # etf without its compensation: 500 us early
    assert ("TAI offset 0" in str(sent.end["waiter"]["notes"])) == kind.startswith("etf"), sent.end["waiter"]["notes"]


@in_device(*DEVICES, slow=("phone", "router"))
@pytest.mark.parametrize("kind", KINDS)
def test_probes_leave_when_their_queue_lets_them(wire: None, tmp_path: Path, kind: str) -> None:
    probes_leave_when_their_queue_lets_them(tmp_path, kind)


@in_device("pc", kernel="5.10", slow=("pc",))
@pytest.mark.parametrize("kind", KINDS)
def test_so_they_do_on_5_10(wire: None, tmp_path: Path, kind: str) -> None:
    probes_leave_when_their_queue_lets_them(tmp_path, kind)


@in_device("pc", kernel="6.12", slow=("pc",))
@pytest.mark.parametrize("kind", KINDS)
def test_so_they_do_on_6_12(wire: None, tmp_path: Path, kind: str) -> None:
    probes_leave_when_their_queue_lets_them(tmp_path, kind)


@in_device("pc")
def test_what_etf_cannot_keep_has_failed(wire: None, tmp_path: Path) -> None:
    """With a delta of zero etf drops each frame, because its time has passed. The error queue reports each."""
    queue("etf", "clockid", "CLOCK_TAI", "delta", "0")
    sent = send(tmp_path, "--interval", "2ms", count=50)
    assert sent.end["failed"] == 50 and sent.end["sent"] == 0, sent.end
    assert {row["error"] for row in sent.rows} <= {"Timer expired", "Device timeout"}  # glibc, musl
    dropped = json.loads(run("tc", "-n", "near", "-s", "-j", "qdisc", "show", "dev", "wire"))[0]["drops"]
    assert dropped >= 50  # the host's own packets have no launch time


@in_device("pc")
def test_trains_and_late_ones(wire: None, tmp_path: Path) -> None:
    """A train leaves together, with or without etf. Probes beyond fq's limit of a flow wait for room and are not lost."""
    for kind in ("fq timer_slack 0 flow_limit 16", "etf clockid CLOCK_TAI delta 300000"):
        queue(*kind.split())
        sent = send(tmp_path, "--interval", "5ms", "--train", "4", count=80)
        assert sent.end["sent"] == 80, sent.end
        at = [int(row["sent_ns"]) for row in sent.rows]
        assert max(at[i + 3] - at[i] for i in range(0, 80, 4)) < 1_000_000 < min(at[i + 4] - at[i + 3] for i in range(0, 76, 4))
        sent = send(tmp_path, "--rate", "20k", count=2000)
        assert sent.end["sent"] == 2000 and sent.end["tries"] == 2000, sent.end
    assert send(tmp_path, "--interval", "1ms", "--threads", "2", count=100).end["sent"] == 100  # one processor suffices, because no thread polls


@in_device("pc")
def test_a_queue_that_is_replaced_in_mid_run_is_noticed(wire: None, tmp_path: Path) -> None:
    reports = tmp_path / "reports.csv"
    queue("fq")
    process = subprocess.Popen([*SEND, "--count", "150", "--interval", "10ms", "--reports", str(reports)], stdout=subprocess.PIPE, text=True)
    time.sleep(0.5)
    queue("pfifo")
    out, _ = process.communicate()
    end = json.loads(out)
    assert end["sent"] + end["failed"] == 150 and 20 < end["sent"] < 120, end
    rows = list(csv.DictReader(reports.open(newline="")))
    assert {row["error"] for row in rows if row["status"] == "failed"} <= {"Operation not supported", "Not supported"}
    assert [row["status"] for row in rows] == ["sent"] * end["sent"] + ["failed"] * end["failed"]
    # A frame that was lost with the old queue has no stamp, and so no lateness.
    early = sum(int(row["lateness_ns"]) < -50_000 for row in rows if row["lateness_ns"])
    assert 1 <= early <= 4  # those submitted before the first error was read


@in_device("pc")
def test_etf_below_a_root_with_queues(pair: None, tmp_path: Path) -> None:
    """As in time-sensitive networks: class 0, of priority 3, has its own queue with etf; the others are not timed."""
    run("ip", "-n", "near", "link", "del", "wire")
    run("ip", "link", "add", "name", "wire", "netns", "near", "numtxqueues", "4", "numrxqueues", "4", "type", "veth",
        *("peer", "name", "wire", "netns", "far", "numtxqueues", "4", "numrxqueues", "4"))
    for index, name in enumerate(("near", "far"), start=1):
        run("ip", "-n", name, "address", "add", f"10.9.0.{index}/24", "dev", "wire")
        run("ip", "-n", name, "link", "set", "dev", "wire", "up")
    run("ip", "netns", "exec", "near", "ping", "-c", "1", "-q", "10.9.0.2")
    run("tc", "-n", "near", "qdisc", "add", "dev", "wire", "root", "handle", "1:", "mqprio", "num_tc", "3",
        *("map", *"2210222222222222", "queues", "1@0", "1@1", "2@2", "hw", "0"))
    run("tc", "-n", "near", "qdisc", "replace", "dev", "wire", "parent", "1:1", "etf", "clockid", "CLOCK_TAI", "delta", "300000")
    sent = send(tmp_path, "--interval", "10ms")
    assert sent.end["sent"] == 101 and abs(middle(sent.lateness_us())) < 20, sent.end
    queues = json.loads(run("tc", "-n", "near", "-s", "-j", "qdisc", "show", "dev", "wire"))
    assert next(q for q in queues if q["kind"] == "etf")["packets"] == 101
