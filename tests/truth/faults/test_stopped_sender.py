# SPDX-License-Identifier: MIT OR Apache-2.0
"""The process that sends a TCP flow stands still for a part of each half second: the path is without load for a part of the time, and its delay under load
is not measured. Reference: the bytes through the router, by tc."""

import json
import time

import pytest
from noise import before_others
from waiting import read_until, stand_still

MBIT, FOR_S = 20, 4


def stop_again_and_again(process, stopped_s, until):
    while time.monotonic() < until:
        stand_still(process, stopped_s)
        time.sleep(0.5 - stopped_s)


@pytest.mark.parametrize("stopped_s", [0, 0.4])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_the_sender_is_named(path, serve, direction, stopped_s):
    device = {"up": "rb", "down": "ra"}[direction]
    path.shape(device, MBIT, 100_000)
    server = serve(path.b, "--token-file", path.token, prefix=before_others())
    words = [path.ktrxer, "flow", direction, "10.78.0.2", "--token-file", path.token, "--for", f"{FOR_S}s", "--jsonl"]
    child = path.a.popen(list(map(str, [*before_others(), *words])))
    read_until(child, lambda one: one.get("type") == "sample" and one.get("bytes", 0) > 0)
    begun = time.monotonic()
    if stopped_s:
        stop_again_and_again(child if direction == "up" else server.process, stopped_s, begun + FOR_S - 0.8)
    out, err = child.communicate(timeout=60)
    assert out, err
    end = json.loads(out.splitlines()[-1])
    (flow,) = end["flows"]
    through = path.counted(device)["bytes"] * 8 / FOR_S / 1e6
    named = f"{direction}: limited by {'this host' if direction == 'up' else 'the server'}: the sender of 1 of 1 flows had no unacknowledged data during up to"
    print(f"figure: {through:.1f} of {MBIT} Mbit/s through the router, the sender was idle for {flow['sender_idle_percent']} %; {end['reasons']}")
    assert (through < 0.85 * MBIT) == bool(stopped_s), "the reference: the stops leave the path empty for a part of the time"
    assert any(named in reason["text"] for reason in end["reasons"]) == flow["sender_limited"] == bool(stopped_s)
    assert stopped_s or flow["sender_idle_percent"] < 5


def test_such_a_run_has_no_grade(path, serve):
    path.shape("ra", MBIT, 100_000)
    server = serve(path.b, "--token-file", path.token, prefix=before_others())
    child = path.start("tcp_download", "--for", "6", "--delay", "1", "-i", "20ms", "--no-extras")
    path.wait_for_samples(100)
    stop_again_and_again(server.process, 0.4, time.monotonic() + 7)
    made = path.result(child)
    assert made.verdict != "valid" and made.says("down: limited by the server: the sender of 1 of 1 flows had no unacknowledged data")
    assert made.summary.grade is None
