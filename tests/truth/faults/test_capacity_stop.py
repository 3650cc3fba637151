# SPDX-License-Identifier: MIT OR Apache-2.0
"""The receiver of `capacity` stands still, and its socket keeps the datagrams: no more has arrived in any second than was sent. Reference: the fixed rate."""

import json
import signal
import time

import pytest
from noise import before_others
from waiting import read_until


@pytest.mark.parametrize("stopped_s", [0, 1])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_the_receiver_stands_still(path, serve, direction, stopped_s):
    """Row 20 is 20 Mbit/s."""
    server = serve(path.b, "--token-file", path.token, "--udpstp-port", 24601, prefix=before_others())
    words = ["capacity", "10.78.0.2", "--direction", direction, "--for", "5s", "--row", 20, "--token-file", path.token, "--jsonl"]
    child = path.a.popen(list(map(str, [*before_others(), path.ktrxer, *words])))
    read_until(child, lambda one: one.get("kind") == "ip_capacity")
    time.sleep(0.6)
    if stopped_s:
        receiver = server.process if direction == "up" else child
        receiver.send_signal(signal.SIGSTOP)
        time.sleep(stopped_s)
        receiver.send_signal(signal.SIGCONT)
    out, err = child.communicate(timeout=60)
    assert out, err
    end = json.loads(out.splitlines()[-1])
    maximum = end[direction]["maximum"]["bit_s"]
    said = any(f"{direction}: limited by {'the server' if direction == 'up' else 'this host'}, which receives" in reason for reason in end["reasons"])
    print(f"figure: maximum {maximum / 1e6:.2f} Mbit/s; {end['reasons']}")
    # A busy machine sends less.
    assert 10e6 < maximum < 20.6e6
    assert said == bool(stopped_s)
