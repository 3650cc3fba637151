# SPDX-License-Identifier: MIT OR Apache-2.0
"""A server of OWAMP that stands still while it sends: its packets are late or missing, and the path did not lose them. Reference: the stop itself.
Or while it receives: its socket drops packets. Reference: RcvbufErrors of the server's host."""

import json
import re
import signal
import time

import pytest
from noise import before_others
from test_udp_flows import receive_errors
from waiting import stand_still

COUNT, INTERVAL_MS = 100, 20


# Seconds for which it stands still: not at all; it continues before the time-out of the last packet; or after that.
@pytest.mark.parametrize("stopped_s", [0, 0.6, 2.5])
def test_a_server_that_stands_still(path, serve, stopped_s):
    server = serve(path.b, "--token-file", path.token, "--owamp-port", 861, prefix=before_others())
    words = ["owamp", "10.78.0.2", "--direction", "down", "--model", "constant", "-i", f"{INTERVAL_MS}ms", "-c", COUNT, "--timeout", "500ms", "--jsonl"]
    child = path.a.popen(list(map(str, [*before_others(), path.ktrxer, *words])))
    time.sleep(1.5)  # half a second of the connection, and a second of the packets
    if stopped_s:
        stand_still(server.process, stopped_s)
    out, err = child.communicate(timeout=60)
    assert out, err
    end = json.loads(out.splitlines()[-1])
    down = end["down"]
    print(f"figure: {down['sent']} sent, {down['arrived']} arrived, {down['lost']} lost, {down['late']} late; {end['reasons']}")
    less = any(f"of {COUNT} packets: its processor" in reason["text"] for reason in end["reasons"])
    assert down["lost"] == 0 and down["sent"] == down["arrived"], "the path lost nothing"
    assert less == (down["sent"] + down["not_sent"] < COUNT), "a packet that is late by more than the time-out is not sent (RFC 4656, 4.1.1)"
    assert (end["verdict"] != "valid") == (down["sent"] < COUNT), "packets that left late have true delays"
    assert down["late"] > 15 or down["sent"] < COUNT or not stopped_s


WORDS = "lost up by the path or the server's socket: lost_in_socket in its end object"


@pytest.mark.parametrize("stopped_s", [0, 3])
def test_what_the_servers_socket_drops(path, serve, stopped_s):
    """The protocol has no field for it: the client's text says where the number is, if packets were lost."""
    server = serve(path.b, "--token-file", path.token, "--owamp-port", 861, prefix=before_others())
    words = ["owamp", "10.78.0.2", "--direction", "up", "--model", "constant", "-i", "125us", "-c", 36_000, "--timeout", "5s"]
    before = receive_errors(path.b)
    child = path.a.popen(list(map(str, [*before_others(), path.ktrxer, *words])))
    time.sleep(2)  # the connection, and the first packets
    if stopped_s:
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(stopped_s)
        server.process.send_signal(signal.SIGCONT)
    out, err = child.communicate(timeout=60)
    drops = receive_errors(path.b) - before
    server.stop()
    print(f"figure: RcvbufErrors {drops}; {out}{err}; {server.end['owamp']}")
    lost = int(re.search(r"up: .* arrived, (\d+) lost", out)[1])
    assert (drops > 100) == bool(stopped_s), "the reference"
    assert lost == drops == server.end["owamp"]["lost_in_socket"]
    assert (WORDS in out) == bool(stopped_s)
