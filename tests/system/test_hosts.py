# SPDX-License-Identifier: MIT OR Apache-2.0
"""The test infrastructure: hosts are connected, removed afterwards, and swept after a kill -9. The judge distinguishes good from bad timing."""

import os
import signal
import subprocess
import sys
import time

from ktrxer_lab import hosts
from ktrxer_lab.bench import contest, judge


def names() -> str:
    return subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout


def test_pair_is_joined(shared_pair):
    a, b = shared_pair
    a.run(["ping", "-n", "-c", "1", "-W", "2", b.address])
    a.run(["ping", "-n", "-c", "1", "-W", "2", b.address6])


def test_gone_after_an_error(requires_namespaces):
    try:
        with hosts.pair() as (a, b):
            child = b.popen(["sleep", "1000"])
            mine = (a.name, b.name)
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert not any(name in names() for name in mine)
    assert child.poll() == -signal.SIGKILL


def test_swept_after_a_kill(requires_namespaces):
    environment = os.environ | {"PYTHONPATH": str(contest.ROOT / "python")}
    program = "from ktrxer_lab import hosts; import time\nwith hosts.pair() as (a, b): print(a.name, flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)
    name = child.stdout.readline().strip()
    assert name in names()
    assert name not in hosts.sweep(), "its owner lives"
    child.kill()
    child.communicate()
    assert name in hosts.sweep()
    assert name not in names()


def test_judge_sees_every_probe_and_its_time(shared_pair):
    a, b = shared_pair
    start = time.time_ns()
    sent = contest.sleeper(a, b, "absolute", 1000, 50)
    assert [arrival.number for arrival in sent.arrivals] == list(range(50))
    assert all(start < arrival.at_ns < time.time_ns() for arrival in sent.arrivals)


def test_interval_errors():
    arrivals = [judge.Arrival(n, at) for n, at in ((0, 1000), (1, 2010), (2, 2990), (4, 5000), (5, 6000))]
    # 3 is lost: neither 2..3 nor 3..4 is an interval.
    assert judge.interval_errors_ns(arrivals, 1000) == [10, -20, 0]
    assert judge.interval_errors_ns([*arrivals, judge.Arrival(5, 9999)], 1000) == [10, -20, 0], "duplicates do not count"
    assert judge.interval_errors_ns([], 1000) == []


def test_quantiles():
    assert [judge.quantile([3, 1, 2, 4], q) for q in (0, 0.25, 0.5, 0.51, 1)] == [1, 1, 2, 3, 4]
    assert judge.quantile([], 0.5) != judge.quantile([], 0.5), "of nothing: not a number"
    assert judge.timing([-2000, 1000, 3000, 1000]).median_us == 1
