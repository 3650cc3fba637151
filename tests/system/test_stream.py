# SPDX-License-Identifier: MIT OR Apache-2.0
"""The parameters of the stream beside its figures: RFC 3393 1.3, RFC 7679 3.8.1 and 3.8.2, RFC 7680 2.8.2."""

import json
import sys

import pytest

GIVEN = {
    (): {"timeout_ns": 4_000_000_000, "model": "constant", "dscp": 0},
    ("--timeout", "2500ms", "--model", "poisson", "--dscp", "ef"): {"timeout_ns": 2_500_000_000, "model": "poisson", "dscp": 46},
}


@pytest.mark.parametrize("address", ["address", "address6"])
@pytest.mark.parametrize("options", GIVEN)
@pytest.mark.parametrize("command", ["ping", "stamp"])
def test_the_end_object_has_the_parameters(shared_pair, ktrxer, serve, command, options, address):
    a, b = shared_pair
    if command == "stamp":
        serve(b)
    words = [ktrxer, command, getattr(b, address), "--count", "5", "--interval", "7ms", *options, "--json"]
    end = json.loads(a.run(words, check=False).stdout)
    assert {name: end[name] for name in ("timeout_ns", "interval_ns", "model", "dscp")} == GIVEN[options] | {"interval_ns": 7_000_000}


def test_classes_have_their_own_marks(shared_pair, ktrxer, serve):
    a, b = shared_pair
    serve(b)
    end = json.loads(a.run([ktrxer, "stamp", b.address, "--count", "5", "--dscp", "be,ef", "--json"], check=False).stdout)
    assert "dscp" not in end and [one["dscp"] for one in end["classes"]] == [0, 46] and end["timeout_ns"] == 4_000_000_000


HOLDS_ONE = """
import socket, sys, threading
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM); s.bind((sys.argv[1], 7)); print("ready", flush=True)
n = 0
while True:
    data, peer = s.recvfrom(2048); n += 1
    if n == 4: threading.Timer(2.0, s.sendto, (data, peer)).start()
    else: s.sendto(data, peer)
"""


@pytest.mark.parametrize("address", ["address", "address6"])
def test_an_answer_within_the_time_out_counts(shared_pair, ktrxer, address):
    """One answer comes 2 s late, after those to 20 later probes (RFC 6673, 5.4). By --overtaken it is given up, and is no loss either."""
    a, b = shared_pair
    far = getattr(b, address)
    words = [ktrxer, "ping", far, "-u", "--count", "30", "--interval", "100ms", "--timeout", "3s", "--json"]
    for options, counts in (([], (30, 0)), (["--overtaken", "1s"], (29, 1))):
        with b.popen([sys.executable, "-c", HOLDS_ONE, far]) as echo:
            assert echo.stdout.readline() == "ready\n"
            end = json.loads(a.run([*words, *options], check=False).stdout)
            echo.kill()
        assert (end["received"], end["too_late"]) == counts and end["lost"] == 0 and end["sent"] == 30, end
        assert (end["rtt_us"]["max"] > 1.9e6) == (not options), end["rtt_us"]
        said = [reason["text"] for reason in end["reasons"] if reason["id"] == "too_late"]
        assert bool(said) == bool(options) and all("after the time-out of 3.000 s, or after a later probe's answer" in text for text in said), said
