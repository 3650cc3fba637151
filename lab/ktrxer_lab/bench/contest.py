"""Senders against each other over the same veth pair, in turns, judged at the far end."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ktrxer_lab.bench.judge import Arrival, interval_errors_ns, timing
from ktrxer_lab.hosts import Netns

PORT = 9000
SINK = 9  # the port of the discard service
ROOT = Path(__file__).resolve().parents[3]


def build() -> Path:
    return Path(os.environ.get("KTRXER_BUILD") or ROOT / "build").resolve()


def ktrxer() -> Path:
    """The command under test: $KTRXER_BIN, else that of the build in $KTRXER_BUILD, else build/cli/ktrxer."""
    return Path(os.environ.get("KTRXER_BIN") or build() / "cli" / "ktrxer").resolve()


def baselines() -> Path:
    """The folder of the frozen programs."""
    return build() / "bench" / "baseline"


def commands() -> set[str]:
    """The subcommands of this binary."""
    answer = subprocess.run([str(ktrxer()), "--help"], capture_output=True, text=True, timeout=10).stdout
    return set(re.findall(r"^  ([a-z]+(?: [a-z]+)?)  ", answer, re.MULTILINE))


def stolen_ms() -> int:
    """Steal time of this virtual machine so far, in milliseconds."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[8]) * 1000 // os.sysconf("SC_CLK_TCK") if len(fields) > 8 else 0


@dataclass(frozen=True)
class Sent:
    """One turn of one sender."""

    arrivals: list[Arrival]
    result: dict[str, Any]  # of ktrxer send; empty for other senders
    reports: list[dict[str, str]]  # likewise, on request


@contextlib.contextmanager
def listening(host: Netns, count: int, seconds: float) -> Iterator[list[Arrival]]:
    """Run the judge while the body sends. The list is complete afterwards."""
    arrivals: list[Arrival] = []
    judge = host.popen([baselines() / "arrivals", host.address, str(PORT), str(count), str(seconds)])
    assert judge.stdout is not None
    if judge.stdout.readline() != "ready\n":
        raise RuntimeError(f"the judge did not start: {judge.communicate()[1]}")
    yield arrivals
    for _ in range(50):  # wait for packets in transit
        if judge.poll() is not None:
            break
        time.sleep(0.01)
    judge.terminate()
    output, _ = judge.communicate(timeout=30)
    arrivals += [Arrival(*map(int, line.split())) for line in output.splitlines()]


def sleeper(a: Netns, b: Netns, kind: str, interval_us: int, count: int, payload: int = 28, before: Sequence[str] = ()) -> Sent:
    """Run a sleeping sender. `before`: a command that starts it, for example chrt."""
    with listening(b, count, 30 + count * interval_us / 1e6) as arrivals:
        a.run(
            [*before, baselines() / "sleeper", kind, b.address, str(PORT), str(interval_us), str(count), str(payload)],
            timeout=60 + count * interval_us / 1e6,
        )
    return Sent(arrivals, {}, [])


def noise_us(a: Netns, b: Netns, interval_us: int, count: int) -> float:
    """The timing noise of this machine: the larger of median |interval error| and IQR of a program that does nearly nothing with the
    highest priority. Without the right to real-time priority, of a normal program."""
    highest = ("chrt", "-f", "99") if subprocess.run(["chrt", "-f", "99", "true"], capture_output=True).returncode == 0 else ()
    arrivals = sleeper(a, b, "absolute", interval_us, count, before=highest).arrivals
    answer = timing(interval_errors_ns(arrivals, interval_us * 1000))
    return max(answer.median_us, answer.iqr_us)


def send(a: Netns, b: Netns, *options: str, count: int, seconds: float = 60, reports: bool = False) -> Sent:
    """`ktrxer send` to the judge. A verdict that is not `valid` is a result, too."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "reports.csv"
        more = ["--reports", str(table)] if reports else []
        with listening(b, count, seconds + 30) as arrivals:
            result = send_only(a, b, *options, *more, count=count, seconds=seconds)
        rows = list(csv.DictReader(table.open())) if reports else []
    return Sent(arrivals, result, rows)


def send_only(a: Netns, b: Netns, *options: str, count: int | None = None, seconds: float = 60, port: int = PORT) -> dict[str, Any]:
    counted = ["--count", str(count)] if count else []
    done = a.run([ktrxer(), "send", b.address, "--port", str(port), *counted, "--json", *options], timeout=seconds + 30, check=False)
    try:
        result: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise RuntimeError(
            f"ktrxer send {' '.join(options)}: exit status {done.returncode}, no result\n{done.stdout}{done.stderr}"
        ) from None
    if "sent" not in result:  # it sent nothing at all
        raise RuntimeError(f"ktrxer send {' '.join(options)}: {'; '.join(one['text'] for one in result['reasons'])}\n{done.stderr}")
    return result


@contextlib.contextmanager
def sink(b: Netns) -> Iterator[None]:
    """A port that accepts all packets and never reads them, so that the far end sends no ICMP errors."""
    program = (
        "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1); "
        f"s.bind(('', {SINK})); print('ready', flush=True); sys.stdin.read()"
    )
    child = b.popen(["python3", "-c", program], stdin=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    try:
        yield
    finally:
        child.kill()
        child.communicate()


@contextlib.contextmanager
def cross_traffic(a: Netns, b: Netns, per_second: int) -> Iterator[dict[str, Any]]:
    """Send cross traffic while the body runs. The dict then has its received `rate`."""
    account: dict[str, Any] = {}
    if not per_second:
        yield account
        return
    with sink(b):
        child = a.popen([baselines() / "cross", b.address, str(SINK), str(per_second), "3600"])
        start, before = time.monotonic(), b.counters()["rx"]["packets"]
        time.sleep(0.2)
        try:
            yield account
        finally:
            account["rate"] = (b.counters()["rx"]["packets"] - before) / (time.monotonic() - start)
            child.kill()
            child.communicate()


def processor_share(a: Netns, b: Netns, sender: str, seconds: float) -> tuple[float, float]:
    """The rate of a baseline, and its share of a processor. It never sleeps, so other processes used the rest."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    rated = rate(a, b, sender, seconds)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return rated, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / seconds


def rate(a: Netns, b: Netns, sender: str, seconds: float, payload: int = 28) -> float:
    """Packets a second that reach the far end's device. The sender is raw_rate or udp_rate, the baselines, or an engine of ktrxer."""
    before = b.counters()["rx"]["packets"]
    if sender == "raw_rate":
        answer = a.run([baselines() / sender, a.address, b.address, str(SINK), str(seconds), str(payload)]).stdout
        duration = json.loads(answer)["duration_ns"]
    elif sender == "udp_rate":
        answer = a.run([baselines() / sender, b.address, str(SINK), str(seconds), str(payload)]).stdout
        duration = json.loads(answer)["duration_ns"]
    else:
        result = send_only(a, b, "--engine", sender, "--for", f"{seconds}s", "--payload", str(payload), port=SINK)
        duration = result["duration_ns"]
    return float((b.counters()["rx"]["packets"] - before) * 1e9 / duration)
