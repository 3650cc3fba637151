# SPDX-License-Identifier: MIT OR Apache-2.0
"""Real-time work of another process has the processor of the prober, or of the reflector. References: the run delay of the process, which the kernel
counts, and for the reflector the share of time that the other work leaves free."""

import contextlib
import json
import os
from pathlib import Path

import pytest
from real_time_work import real_time_work

FREE_SHARE = 0.2

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor: nothing is left beside the other work")


def waited_ms(pid):
    """The first thread of this process was ready for so long and had no processor (sched-stats.rst)."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e6


def pin(pid, cpu):
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), {cpu})


@pytest.mark.parametrize("command", ["ping", "stamp"])
def test_a_prober_that_waits_for_its_processor(path, serve, command):
    free, taken, *_ = sorted(os.sched_getaffinity(0))
    server = serve(path.b)
    pin(server.process.pid, free)
    with real_time_work(taken, 2.5):
        words = ["taskset", "-c", str(taken), path.ktrxer, command, "10.78.0.2", "-i", "5ms", "--for", "1500ms", "--jsonl", "--brief"]
        child = path.a.popen(list(map(str, words)))
        waits = []
        for line in child.stdout:
            end = json.loads(line)
            with contextlib.suppress(OSError):
                waits.append(waited_ms(child.pid))
        child.wait()
        reference = waits[-1] - waits[0]
    print(f"figure: run delay of the {command} {reference:.1f} ms; host {end['host']}; {end['reasons']}")
    assert reference > 300, "the reference's process was not starved"
    assert end["host"]["processor_wait_ms"] == pytest.approx(reference, rel=0.2, abs=50)
    assert end["verdict"] == "invalid" and end["late"] > 0.1 * end["sent"]
    assert any("limited by this host" in reason and "waited" in reason and "for a processor" in reason for reason in end["reasons"])


def test_a_reflector_that_waits_for_its_processor(path, serve):
    free, taken, *_ = sorted(os.sched_getaffinity(0))
    server = serve(path.b)
    pin(server.process.pid, taken)
    with real_time_work(taken, 2.5):
        words = ["taskset", "-c", str(free), path.ktrxer, "stamp", "10.78.0.2", "-i", "5ms", "--for", "1500ms", "--json"]
        end = json.loads(path.a.popen(list(map(str, words))).communicate(timeout=30)[0])
    print(f"figure: dwell max {end['dwell_max_ns'] / 1e6:.1f} ms, round trip {end['rtt_us']}; lateness {end['lateness_us']}; {end['reasons']}")
    assert end["dwell_max_ns"] > 20e6, "the reflector was not starved"
    assert end["rtt_us"]["p99"] < 10_000, "the time for which the reflector held a probe is no delay of the path"
    assert end["verdict"] != "valid" and any("limited by the server: it held a probe" in reason for reason in end["reasons"])


def test_a_run_names_the_host_whose_probers_wait(path, serve):
    free, taken, *_ = sorted(os.sched_getaffinity(0))
    server = serve(path.b, "--token-file", path.token)
    pin(server.process.pid, free)
    child = path.start("ping", "-l", "3", "--delay", "0.2", "-i", "10ms", "--no-extras")
    path.wait_for_samples(100)
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cmdline").read_bytes().split(b"\0")[:2] in ([str(path.ktrxer).encode(), b"ping"], [str(path.ktrxer).encode(), b"stamp"]):
                pin(int(process.name), taken)
    with real_time_work(taken, 2.5):
        made = path.result(child)
    assert made.verdict != "valid" and made.says("limited by this host", "waited", "for a processor")
