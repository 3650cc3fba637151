# SPDX-License-Identifier: MIT OR Apache-2.0
"""
The hostile clients of adversary.py, all at once, beside one honest STAMP session and one honest flow whose figures must not degrade.

    A 10.77.0.1 a0 ------- b0 10.77.0.2 B 10.79.0.2 b1 ------- c1 10.79.0.1 C 10.80.0.0/16
    honest                             server                  hostile; forged sources of 198.18.0.0/15

Hostile clients have idle priority: the hosts that they stand for have processors of their own.
$KTRXER_ADVERSARY_S: the length of the attack (30; `make soak` takes 600).
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import threading
from pathlib import Path

import adversary
import pytest
from conftest import LIMIT_S
from flows import command
from stamps import parse

SECONDS = int(os.environ.get("KTRXER_ADVERSARY_S", "30"))


@pytest.fixture
def three_hosts(pair):
    from ktrxer.lab import hosts

    a, b = pair
    with hosts.Netns("c") as c:
        hosts.join(c, b, net=79, devices=("c1", "b1"))
        c.ip("route", "add", "local", "10.80.0.0/16", "dev", "lo")
        for network in ("10.80.0.0/16", "198.18.0.0/15"):
            b.ip("route", "add", network, "via", "10.79.0.1")
        yield a, b, c


class Honest:
    """One STAMP session and one flow at once."""

    def __init__(self, a, b, ktrxer, token, seconds):
        probes = a.popen([ktrxer, "stamp", b.address, "-i", "5ms", "--for", f"{seconds}s", "--jsonl"], stdout=subprocess.PIPE)
        flow = a.popen([*command(ktrxer, token, "down", b.address, "--bitrate", "4M", "--for", f"{seconds}s"), "--json"])
        texts = []
        readers = [threading.Thread(target=lambda child=child: texts.append((child, child.communicate(timeout=seconds + 60)))) for child in (probes, flow)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        said = dict(texts)
        self.stamp, kinds = parse(said[probes][0])
        self.flow = json.loads(said[flow][0])
        samples = kinds["round_trip"]
        # `rtt_ns` leaves out the time in the reflector; a server that is kept busy shows in the sum.
        self.rtt_us = statistics.median(one["rtt_ns"] for one in samples) / 1000
        self.answer_us = statistics.median(one["rtt_ns"] + one["dwell_ns"] for one in samples) / 1000
        self.bytes = self.flow["flows"][0]["bytes"]


def test_hostile_clients_beside_honest_ones(three_hosts, ktrxer, serve, token):
    a, b, c = three_hosts
    signal.alarm(LIMIT_S + 2 * SECONDS)
    server = serve(b, "--token-file", token)
    before = Honest(a, b, ktrxer, token, 5)
    script = Path(__file__).with_name("adversary.py")
    attacks = {kind: c.popen([sys.executable, script, kind, "10.79.0.2", token]) for kind in adversary.KINDS}
    for kind, child in attacks.items():
        assert child.stdout.readline() == "begun\n", f"{kind}: {child.communicate()[1]}"
    during = Honest(a, b, ktrxer, token, SECONDS)
    actions = {}
    for kind, child in attacks.items():
        assert child.poll() is None, f"{kind} has ended by itself: {child.communicate()[1]}"
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=20)
        assert out.strip().isdigit(), f"{kind}: {out}{err}"
        actions[kind] = int(out)
    counts = server.stop()
    flows = server.end["flows"]
    print(f"round trip {before.rtt_us} us before, {during.rtt_us} us under attack; until the answer {before.answer_us} and {during.answer_us} us;")
    print(f"{during.stamp['sent']} probes, {during.stamp['lost']} lost; flow {during.bytes} bytes; actions {actions}; {counts}; {flows}")
    # The attacks took place, and each met its defence.
    assert all(done >= SECONDS for done in actions.values()), actions
    assert flows["pending_displaced"] + flows["pending_slow"] > 10 * SECONDS and flows["refused"]["wrong_token"] > SECONDS
    assert flows["refused"]["malformed"] > 0 and counts["too_short"] > SECONDS and counts["rate"] > SECONDS and counts["sessions"] > 1000
    # The honest ones noticed nothing.
    assert during.rtt_us < 1.2 * before.rtt_us and during.answer_us < 1.2 * before.answer_us
    assert during.stamp["lost"] == 0, during.stamp
    assert during.flow["flows"][0]["error"] is None and during.bytes > 0.95 * 4e6 / 8 * SECONDS, during.flow
