# SPDX-License-Identifier: MIT OR Apache-2.0
"""One starved processor of two: another program uses the processor of one end, and the mean of all processors is far below 90 %. References: the kernel's
run delay of the process, read here, and the affinity of the hog."""

import json
import os
from pathlib import Path

import pytest
from real_time_work import real_time_work


def pin(pid, cpu):
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), {cpu})


def waited_ns(pid):
    """The time that the first thread of this process was runnable without a processor (sched-stats.rst)."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor: nothing is left beside the hog")
@pytest.mark.parametrize(("end", "direction", "more"), [("server", "up", ()), ("here", "down", ()), ("server", "up", ("--udp", "-b", "20M"))])
def test_the_processor_of_one_end_is_taken(path, serve, end, direction, more):
    free, taken, *_ = sorted(os.sched_getaffinity(0))
    server = serve(path.b, "--token-file", path.token)
    pin(server.process.pid, taken if end == "server" else free)
    words = ["taskset", "-c", str(free if end == "server" else taken), path.ktrxer, "flow", direction, "10.78.0.2", "--token-file", path.token]
    with real_time_work(taken):
        child = path.a.popen([*map(str, words), "--for", "2s", "--jsonl", *more])
        process = server.process.pid if end == "server" else child.pid
        begun = ended = 0
        for line in child.stdout:
            kind = json.loads(line)
            if kind["type"] == "sample" and not begun:
                begun = waited_ns(process)
            if kind["type"] == "sample":
                ended = waited_ns(process)
        child.wait()
    made = kind
    share = (ended - begun) / 2e9
    print(f"figure: run delay of the {end} {share:.0%}, it reports {made['processor_wait_percent']}; {made['reasons']}")
    assert share > 0.2, "the reference's process was not starved"
    assert made["processor_wait_percent"][end] == pytest.approx(100 * share, abs=12)
    assert made["verdict"] != "valid"
    named = "limited by the server: it waited for a processor" if end == "server" else "limited by this host: the flows' thread waited for a processor"
    assert any(named in reason for reason in made["reasons"])
