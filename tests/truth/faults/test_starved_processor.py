# SPDX-License-Identifier: MIT OR Apache-2.0
"""One starved processor of two: another program uses the processor of one end, and the mean of all processors is far below 90 %. References: the kernel's
run delay of the process, read here, and the affinity of the hog."""

import json
import os

import pytest
from noise import before_others
from real_time_work import pin, pin_commands, real_time_work
from waiting import waited_ns

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor: nothing is left beside the hog")

UPLOAD = """
from ktrxer.catalogue.recipe import NoParameters, Plan, Setting, Test, combine, udp, uploads
def plan(setting: Setting, _: NoParameters) -> Plan:
    return combine(udp(setting, "Ping (ms) UDP"), uploads(setting, ["TCP upload"]))
TEST = Test("mine", "an upload and UDP probes", plan)
"""


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
    (bound,) = made["bounds"]
    assert bound["bound"] <= bound["tolerance"], "the bytes are counted, and the time as well"


def test_the_processors_of_both_ends_are_taken(path, serve):
    here, there, *_ = sorted(os.sched_getaffinity(0))
    server = serve(path.b, "--token-file", path.token)
    pin(server.process.pid, there)
    words = ["taskset", "-c", str(here), path.ktrxer, "flow", "up", "10.78.0.2", "--token-file", path.token, "--for", "1500ms", "--json"]
    child = path.a.popen(list(map(str, words)))
    before = waited_ns(server.process.pid)
    with real_time_work(here, 3), real_time_work(there, 3):
        end = json.loads(child.communicate(timeout=60)[0])
    waited = (waited_ns(server.process.pid) - before) / 1e9
    print(f"figure: run delay of the server {waited:.2f} s; {end['processor_wait_percent']}; {end['reasons']}")
    assert waited > 0.3, "the reference's process was not starved"
    assert min(end["processor_wait_percent"].values()) > 15, "the waits are figures"


def test_the_processor_of_the_flows_alone_is_taken(path, serve, tmp_path):
    free, taken, *_ = sorted(os.sched_getaffinity(0))
    server = serve(path.b, "--token-file", path.token, prefix=before_others())
    pin(server.process.pid, free)
    (tmp_path / "own.py").write_text(UPLOAD)
    child = path.start(tmp_path / "own.py", "--for", "3", "--delay", "0.5", "-i", "20ms", "--no-extras")
    path.wait_for_samples(10)
    pin_commands(path.ktrxer, ["stamp"], free)
    pin_commands(path.ktrxer, ["flow"], taken)
    with real_time_work(taken, 4):
        made = path.result(child)
    assert not made.says("limited by the server")
