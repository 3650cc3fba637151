# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer run` with the real measuring processes, over a path with a bottleneck in the middle.

    a 10.77.0.1 ---- 10.77.0.2 r 10.78.0.1 ---- 10.78.0.2 b
                            20 Mbit/s each way, in r
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from ktrxer_lab import hosts

pytest.importorskip("pyarrow", reason="the Python part's packages are not installed: `make .venv/.ok`")

from ktrxer.figures import facts
from ktrxer.statistics.throughput import bytes_rate, sum_of_flows
from ktrxer.store import open_run
from ktrxer.summary import figures
from noise import busy, least
from routed import routed

ROOT = Path(__file__).resolve().parents[2]
MBIT = 20
HEADERS = 66  # Ethernet, IPv4, TCP with time stamps, for each segment without offloads


@contextlib.contextmanager
def bottleneck(limit="100k"):
    with routed() as (a, r, b):
        for device in ("ra", "rb"):
            r.run(["tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{MBIT}mbit", "burst", "10k", "limit", limit])
        yield a, r, b


@pytest.fixture(scope="module")
def path(requires_namespaces):
    with bottleneck() as three:
        yield three


@pytest.fixture
def token(tmp_path):
    file = tmp_path / "token"
    file.write_text("a-secret-of-the-tests-of-ktrxer\n")
    file.chmod(0o600)
    return file


@pytest.fixture
def started(ktrxer, serve, needs_command, path, token, tmp_path):
    """started(*words) is `ktrxer run` in host a, against a server in b."""
    needs_command("flow")
    a, _, b = path
    server = serve(b, "--token-file", token)
    (tmp_path / "runs").mkdir()
    environment = os.environ | {"KTRXER_BIN": str(ktrxer), "PYTHONPATH": str(ROOT / "python")}

    def start(*words, host=a, far=b, token_file=token):
        command = [sys.executable, "-m", "ktrxer", "run", *words, "-H", "10.78.0.2", "-D", tmp_path / "runs"]
        command += ["--token-file", token_file] if token_file else []
        return host.popen(list(map(str, command)), env=environment)

    start.server = server
    start.runs = tmp_path / "runs"
    return start


def ended(child, timeout=60):
    out, err = child.communicate(timeout=timeout)
    return child.returncode, out, err


def test_rrul(started):
    status, out, err = ended(started("rrul", "--for", "3", "--delay", "1", "-i", "10ms", "-t", "system test", "--json"))
    assert status in (0, 3) and not err, "on a busy machine it may be degraded; it is never silent"
    told = json.loads(out)
    run = open_run(told["file"])
    assert run.meta.title == "system test" and told["verdict"] == run.meta.verdict
    assert all("failed" not in reason and "covered" not in reason and "recorded" not in reason for reason in run.meta.sentences), run.meta.sentences
    for series in run.meta.of_kind("bytes"):
        arrays = run.arrays(series)
        assert arrays["bytes"].max() > 0, f"{series.name} moved nothing"
        assert {0, 1} == set(arrays["end"]), "counted at both ends"
    for series in run.meta.of_kind("latency"):
        assert len(run.arrays(series)["seq"]) == 500, series.name
    made = figures.summarise(run)
    rates = {t.name: t.mean_mbps for t in made.throughput}
    print(f"figure: rrul over 2 x {MBIT} Mbit/s: {rates}")
    assert all(0.5 * MBIT < rates[f"TCP {way}"] < MBIT for way in ("upload", "download")), rates
    trip = made.latency[0]
    assert trip.loaded.p50 > trip.idle.p50 + 10, "100 kB of queue are 40 ms each way"
    up = next(one for one in made.latency if one.name == "up")
    # The p99, because a busy machine keeps the queue empty half of the time.
    assert up.loaded.p99 > 5 * up.bound_ms, "one-way delays mean something here"
    assert made.responsiveness.rpm < 60_000 / 10 and made.grade.letter in "ABC"
    marks = {series.klass: series.name for series in run.meta.of_kind("latency")}
    assert marks.keys() == {None, "BE", "BK", "EF"}


@pytest.mark.plain_build
def test_64_series_in_4_places_begin_together(ktrxer, requires_namespaces, tmp_path):
    """16 probes in each of four hosts. Their first send times are compared with the time of the plan."""
    with contextlib.ExitStack() as stack:
        places = [stack.enter_context(hosts.Netns(f"p{n}")) for n in range(4)]
        for one in places:
            one.ip("link", "set", "lo", "up")
        runs = [f"*(icmp(s, f'{n}.{{k}}', place='netns:{one.name}').runs[0] for k in range(16))" for n, one in enumerate(places)]
        (tmp_path / "many.py").write_text(
            "from ktrxer.catalogue.recipe import *\nTEST = Test('many', '64 probes', lambda s, _: Plan((" + ", ".join(runs) + "), ('ping',)))\n")
        words = [sys.executable, "-m", "ktrxer", "run", tmp_path / "many.py", "-H", "127.0.0.1", "--for", "0.6", "--delay", "0.2", "-i", "100ms"]
        environment = os.environ | {"KTRXER_BIN": str(ktrxer), "PYTHONPATH": str(ROOT / "python")}
        done = subprocess.run([*map(str, words), "--no-extras", "--json", "-D", str(tmp_path)], env=environment, capture_output=True, text=True, timeout=120)
    made = json.loads(done.stdout) if done.stdout else {}
    assert made and not done.stderr, done.stderr
    run = open_run(made["file"])
    first, second = np.asarray([np.sort(run.arrays(series)["t_ns"])[:2] for series in run.meta.of_kind("latency")]).T / 1e6
    print(f"figure: {len(first)} processes in 4 places: the first probes leave within {np.ptp(first):.3f} ms of each other, the second ones within "
          f"{np.ptp(second):.3f} ms; the very first one {first.min():.3f} ms after the planned time; load {os.getloadavg()[0]:.0f}")
    assert len(first) == 64 and first.min() >= 0
    assert run.meta.accounts["start_spread_ns"] == round(np.ptp(first) * 1e6)
    assert np.median(first) < 100 or busy(made), f"before the second probe is due; {made['reasons']}"


CLASSES = ("CS0", "CS1", "CS2", "CS3", "CS4", "CS5", "CS6", "CS7", "EF", "AF11", "AF12", "AF13", "AF21", "AF22", "AF23")


def test_64_series_of_a_usual_plan_begin_within_a_millisecond(ktrxer, serve, requires_namespaces, tmp_path):
    """ICMP and 15 classes of UDP in each of four hosts. Classes of one kind share a process, so that 12 processes begin together."""
    with contextlib.ExitStack() as stack:
        places = [stack.enter_context(hosts.Netns(f"c{n}")) for n in range(4)]
        runs = []
        for n, one in enumerate(places):
            one.ip("link", "set", "lo", "up")
            serve(one, "--dscp-allow", ",".join(CLASSES))
            runs.append(f"*icmp(s, '{n}.icmp', place='netns:{one.name}').runs")
            runs += [f"*udp(s, '{n}.{mark}', '{mark}', place='netns:{one.name}').runs" for mark in CLASSES]
        (tmp_path / "many.py").write_text(
            "from ktrxer.catalogue.recipe import *\nTEST = Test('many', '64 series', lambda s, _: Plan((" + ", ".join(runs) + "), ('ping',)))\n")
        words = [sys.executable, "-m", "ktrxer", "run", tmp_path / "many.py", "-H", "127.0.0.1", "--for", "0.6", "--delay", "0.2", "-i", "100ms"]
        environment = os.environ | {"KTRXER_BIN": str(ktrxer), "PYTHONPATH": str(ROOT / "python")}
        made = {}

        def spread():
            done = subprocess.run([*map(str, words), "--no-extras", "--json", "-D", str(tmp_path)], env=environment, capture_output=True, text=True, timeout=120)
            made.update(json.loads(done.stdout))
            run = open_run(made["file"])
            series = run.meta.of_kind("latency")
            first = np.asarray([run.arrays(one)["t_ns"].min() for one in series]) / 1e6
            assert len(series) == 64 and len(run.meta.runners) == 12 and first.min() >= 0
            print(f"figure: 64 series in 4 places begin within {np.ptp(first):.3f} ms of each other; load {os.getloadavg()[0]:.0f}")
            return float(np.ptp(first))

        assert least(spread, 1.0) < 1.0 or busy(made), made["reasons"]


def test_the_pause_of_a_batch_reads_the_round_trip_of_ping(shared_pair, ktrxer):
    """Beside the ping of iputils. tests/python/test_batch_pause.py has a double of `ktrxer ping`."""
    a, b = shared_pair
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r}); from ktrxer.batch import idle; print(idle._median_ms(*sys.argv[1:]))"
    ours = float(a.run([sys.executable, "-c", code, str(ktrxer), b.address]).stdout)
    told = a.run(["ping", "-n", "-q", "-c", "20", "-i", "0.02", b.address]).stdout
    least, mean, largest = map(float, re.search(r"= ([0-9.]+)/([0-9.]+)/([0-9.]+)/", told).groups())
    assert least / 5 < ours < 5 * largest, (ours, least, mean, largest)


OWN = """
from ktrxer.catalogue.recipe import NoParameters, Plan, Setting, Test, uploads
def plan(setting: Setting, _: NoParameters) -> Plan:
    return uploads(setting, [f"TCP upload::{n}" for n in range(3)])
TEST = Test("mine", "three uploads, and nothing else on the wire", plan)
"""


# Prints the received bytes of b0 with their times, without end.
WATCH = """
import re, time
while True:
    before = time.monotonic_ns()
    text = open("/proc/net/dev").read()
    after = time.monotonic_ns()
    got = re.search(r"b0: *([0-9]+) +([0-9]+)", text)
    if after - before < 500_000:
        print((before + after) // 2, got[1], got[2], flush=True)
    time.sleep(0.004)
"""


@pytest.mark.plain_build
def test_sums_are_the_bytes_that_the_far_end_received(started, ktrxer, token, tmp_path):
    """The reference from the far host's device: received bytes in the same time, minus the headers of the segments. There are no probes, and the queue is so
    deep that no segment is sent twice."""
    (tmp_path / "own.py").write_text(OWN)
    with bottleneck("20m") as (a, _, b):
        server = b.popen([ktrxer, "serve", "--token-file", token])
        assert server.stdout is not None and server.stdout.readline()
        for _ in range(int(os.environ.get("KTRXER_TURNS", "1"))):
            with (tmp_path / "watched").open("w") as watched:
                watch = b.popen([sys.executable, "-c", WATCH], stdout=watched)
                status, out, err = ended(started(str(tmp_path / "own.py"), "--for", "6", "--delay", "0.2", "--json", "--no-extras", host=a))
                watch.kill()
                watch.wait()
            told = json.loads(out)
            assert not err and status in (0, 3), told["reasons"]
            run = open_run(told["file"])
            lines = (tmp_path / "watched").read_text().splitlines()[:-1]
            at, count, packets = np.asarray([line.split() for line in lines], np.int64).T
            flows = [facts.flow_counts(run, series) for series in run.meta.of_kind("bytes")]
            # Without the two samples at each end: at the beginning and end of the traffic, interpolation between two lines of the counter is no
            # reference.
            window = np.asarray([max(t[2] for t, _, _ in flows), min(t[-3] for t, _, _ in flows)])
            arrived = np.diff(np.interp(window, at - run.meta.zero.monotonic_ns, count - HEADERS * packets))[0]
            counted = sum_of_flows([bytes_rate(t, c, window, gap_ns=10**9) for t, c, _ in flows]).bytes[0]
            seconds = np.diff(window)[0] / 1e9
            print(f"figure: {len(flows)} flows over {seconds:.2f} s: {counted:.0f} bytes, at the far end {arrived:.0f}: {counted / arrived - 1:+.4%}")
            assert seconds > 4.5 and abs(counted - arrived) < 0.001 * arrived


@pytest.mark.plain_build
def test_two_runs_at_once_in_one_directory(started):
    """The same test with the same title, against one server: each run has its own file, with all of its own samples and nothing of the other."""
    words = ("tcp_upload", "--for", "2", "--delay", "0.3", "-i", "20ms", "-t", "twin", "--json", "--no-extras")
    told = []
    for status, out, err in [ended(child) for child in [started(*words), started(*words)]]:
        assert status in (0, 3) and not err, err
        told.append(json.loads(out))
    runs = [open_run(one["file"]) for one in told]
    assert sorted(started.runs.iterdir()) == sorted(run.path for run in runs) and len({run.meta.id for run in runs}) == 2
    apart = abs(runs[0].meta.zero.monotonic_ns - runs[1].meta.zero.monotonic_ns)
    assert apart < runs[0].meta.length_ns, f"they began {apart / 1e9:.1f} s apart: they did not run at once"
    sums = []
    for run in runs:
        assert not any(word in reason for reason in run.meta.sentences for word in ("failed", "covered", "recorded", "accounts")), run.meta.sentences
        assert list(run.arrays(run.series("Ping (ms) ICMP"))["seq"]) == list(range(130)), "2.6 s, a probe each 20 ms"
        (flow,) = (run.arrays(series) for series in run.meta.of_kind("bytes"))
        assert {0, 1} == set(flow["end"]) and all(flow["bytes"][flow["end"] == end].max() > 0 for end in (0, 1)), "counted at both ends"
        sums.append(int(flow["bytes"][flow["end"] == 1].max()))
    print(f"figure: two runs that began {apart / 1e9:.3f} s apart, received bytes {sums}")
    assert sum(sums) < MBIT * 1e6 / 8 * (2 + apart / 1e9) * 1.1, "the two flows share the path: no count holds the bytes of both"


@pytest.mark.plain_build
def test_the_server_dies_in_mid_run(started):
    child = started("tcp_bidirectional", "--for", "4", "--delay", "0.5", "--json", "--no-extras")
    for _ in range(300):
        parts = list(started.runs.glob("*.part/bytes.arrows"))
        if parts and open_run(parts[0].parent).table("bytes").num_rows > 4:
            break
        time.sleep(0.05)
    started.server.process.kill()
    status, out, err = ended(child)
    told = json.loads(out)
    print("\n".join(one["text"] for one in told["reasons"]))
    assert status == 3 and not err and told["verdict"] in ("degraded", "invalid")
    for name in ("TCP upload", "TCP download"):
        assert any(name in reason["text"] for reason in told["reasons"]), f"{name} is named"
    run = open_run(told["file"])
    assert run.table("bytes").num_rows > 0 and (run.arrays(run.series("Ping (ms) ICMP"))["state"] == 0).sum() > 300, "pings go on"


@pytest.mark.plain_build
def test_another_token_and_no_server(started, tmp_path):
    other = tmp_path / "other"
    other.write_text("another-secret-that-is-as-long\n")
    other.chmod(0o600)
    status, out, err = ended(started("tcp_upload", "--for", "1", token_file=other))
    assert (status, out) == (1, "") and err.startswith("ktrxer run: ") and "token" in err and err.count("\n") == 1, err
    started.server.stop()
    started_at = time.monotonic()
    status, out, err = ended(started("rrul", "--for", "1"))
    assert status == 1 and not out and time.monotonic() - started_at < 20
    *lines, last = err.splitlines()
    assert all(line.startswith("ktrxer run: ktrxer ") for line in lines) and "flow" in err and "stamp" in err, err
    assert last.startswith("ktrxer run: the far end of a run is `ktrxer serve`: start it on that host with the same token as here"), err
    status, out, err = ended(started("ping", "--for", "1"))
    assert (status, out) == (1, "") and "start it on that host; its port (8620 without --port) must be open" in err, err
    status, out, err = ended(started("tcp_upload", "--for", "1", token_file=None))
    assert (status, out) == (1, "") and "copy the file of its token, which it names at its start, to this host (mode 0600), and add --token-file FILE; its port" in err, err
    assert not list(started.runs.iterdir())


def test_a_congestion_control_that_is_not_there(started):
    status, out, err = ended(started("tcp_upload", "--for", "1", "--cc", "magic"))
    assert status in (1, 2) and not out and "magic" in err and err.count("\n") == 1, err


def runs_still(pid):
    """Not after its end, also as a zombie."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def test_a_kill_leaves_no_process(started):
    child = started("rrul", "--for", "30", "--delay", "0.5", "--no-extras")
    for _ in range(300):
        if any(open_run(part).table("bytes").num_rows for part in started.runs.glob("*.part")):
            break
        time.sleep(0.05)
    probers = subprocess.run(["pgrep", "-P", str(child.pid)], capture_output=True, text=True, check=True).stdout.split()
    child.send_signal(signal.SIGKILL)
    child.communicate()
    (part,) = started.runs.iterdir()
    for _ in range(100):
        left = [pid for pid in probers if runs_still(pid)]
        if not left:
            break
        time.sleep(0.1)
    assert len(probers) >= 3 and not left
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-m", "ktrxer", "recover", part], capture_output=True, text=True, env=environment, timeout=30)
    assert done.returncode == 0 and not part.exists(), done.stderr
