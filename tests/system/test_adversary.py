# SPDX-License-Identifier: MIT OR Apache-2.0
"""
The hostile clients of adversary.py, all at once, beside one honest STAMP session and one honest flow whose figures must not degrade.

    A 10.77.0.1 a0 ---------- b0 10.77.0.2 B 10.79.0.2 b1 ------- c1 10.79.0.1 C 10.80.0.0/16
    honest                                 server                 hostile; forged sources of 198.18.0.0/15

The attack pauses repeatedly while the honest clients run, so their figures with and without it come from the same minute on the same machine.
Hostile clients have idle priority, because real hostile hosts have their own processors.
$KTRXER_ADVERSARY_S: the length of the attack (24; `make soak` takes 600).
"""

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import adversary
import pytest
from flows import MS, command
from noise import LIMIT_S
from stamps import parse

SECONDS = int(os.environ.get("KTRXER_ADVERSARY_S", "24"))
ROUND_S, QUIET_S = 4, 2  # length of an attack, and of the pause after it
SETTLED_NS = 300 * MS  # time until the queues of the previous phase are empty


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


@pytest.fixture
def urgent():
    """High priority for the server and the honest clients, if the system permits it; the hostile clients choose idle priority."""
    policy, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    yield
    os.sched_setscheduler(0, policy, parameter)


class Honest:
    """One STAMP session and one flow at once."""

    def __init__(self, a, b, ktrxer, token, seconds):
        self.seconds = seconds
        self.children = {
            "stamp": a.popen([ktrxer, "stamp", b.address, "-i", "5ms", "--for", f"{seconds}s", "--jsonl"], stdout=subprocess.PIPE),
            "flow": a.popen([*command(ktrxer, token, "down", b.address, "--bitrate", "4M", "--for", f"{seconds}s"), "--json"]),
        }
        self.said = {}
        self.readers = [threading.Thread(target=self.read, args=name) for name in self.children.items()]
        for reader in self.readers:
            reader.start()

    def read(self, name, child):
        self.said[name] = child.communicate(timeout=self.seconds + 60)

    def wait(self):
        for reader in self.readers:
            reader.join()
        self.stamp, kinds = parse(self.said["stamp"][0])
        self.flow = json.loads(self.said["flow"][0])
        self.samples = kinds["round_trip"]

    def median_us(self, value, phases):
        found = [value(one) for one in self.samples for begin, end in phases if begin + SETTLED_NS < one["sent_ns"] < end]
        assert len(found) > 100 * len(phases), f"{len(found)} samples in {len(phases)} phases"
        return statistics.median(found) / 1000


def signal_all(attacks, number):
    for kind, child in attacks.items():
        assert child.poll() is None, f"{kind} has ended by itself: {child.communicate()[1]}"
        child.send_signal(number)


def test_hostile_clients_beside_honest_ones(urgent, three_hosts, ktrxer, serve, token):
    a, b, c = three_hosts
    rounds = max(2, SECONDS // ROUND_S)
    signal.alarm(LIMIT_S + 2 * SECONDS)
    server = serve(b, "--token-file", token)
    script = Path(__file__).with_name("adversary.py")
    attacks = {kind: c.popen([sys.executable, script, kind, "10.79.0.2", token]) for kind in adversary.KINDS}
    for kind, child in attacks.items():
        assert child.stdout.readline() == "begun\n", f"{kind}: {child.communicate()[1]}"
    signal_all(attacks, signal.SIGSTOP)
    honest = Honest(a, b, ktrxer, token, rounds * (ROUND_S + QUIET_S))
    phases = {True: [], False: []}
    for hostile in [False, True] * rounds:
        signal_all(attacks, signal.SIGCONT if hostile else signal.SIGSTOP)
        begin = time.monotonic_ns()
        time.sleep(ROUND_S if hostile else QUIET_S)  # the length of a phase, not a wait for an event
        phases[hostile].append((begin, time.monotonic_ns()))
    actions = {}
    signal_all(attacks, signal.SIGTERM)
    for kind, child in attacks.items():
        out, err = child.communicate(timeout=20)
        assert out.strip().isdigit(), f"{kind}: {out}{err}"
        actions[kind] = int(out)
    honest.wait()
    counts = server.stop()
    flows = server.end["flows"]
    # `rtt_ns` excludes the time in the reflector, so add that time to detect a busy server.
    values = {"round trip": lambda one: one["rtt_ns"], "until the answer": lambda one: one["rtt_ns"] + one["dwell_ns"]}
    medians = {name: {hostile: honest.median_us(value, phases[hostile]) for hostile in phases} for name, value in values.items()}
    for name, of in medians.items():
        print(f"{name}: median {of[False]:.1f} us without and {of[True]:.1f} us with hostile clients, ratio {of[True] / of[False]:.3f}")
    print(f"{honest.stamp['sent']} probes, {honest.stamp['lost']} lost; flow {honest.flow['flows'][0]['bytes']} bytes; load {os.getloadavg()}")
    print({name: value for name, value in honest.stamp.items() if name in ("lost", "lost_up", "lost_down", "lost_unknown", "too_late", "unanswered_at_end", "reasons")})
    print(f"actions {actions}; {counts}; {flows}; log lines left out {server.end['log_lines_left_out']}")
    # The attacks took place, and the server counted each.
    seconds = rounds * ROUND_S
    assert all(done >= seconds for done in actions.values()), actions
    assert flows["pending_displaced"] + flows["pending_slow"] > 10 * seconds and flows["refused"]["wrong_token"] > seconds
    assert flows["refused"]["malformed"] > 0 and counts["too_short"] > seconds and counts["rate"] > seconds and counts["sessions"] > 1000
    # The honest clients are not affected; the server counts each lost answer.
    assert all(of[True] < 1.2 * of[False] for of in medians.values()), medians
    assert honest.stamp["lost"] <= counts["lost_in_socket"], honest.stamp
    assert honest.flow["flows"][0]["error"] is None and honest.flow["flows"][0]["bytes"] > 0.95 * 4e6 / 8 * honest.seconds, honest.flow
