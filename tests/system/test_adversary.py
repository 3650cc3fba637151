# SPDX-License-Identifier: MIT OR Apache-2.0
"""
The hostile clients of adversary.py, all at once, beside one honest STAMP session and one honest flow whose figures must not degrade.

    A 10.77.0.1 a0 ---------- b0 10.77.0.2 B 10.79.0.2 b1 ------- c1 10.79.0.1 C 10.80.0.0/16
    honest                                 server                 hostile; forged sources of 198.18.0.0/15

The attack pauses repeatedly while the honest clients run, so their figures with and without it come from the same minute on the same machine.
Server and honest clients have a higher priority than the hostile clients, because real hostile hosts have their own processors. Other work of this
machine, and its hypervisor, take processor time in both kinds of phases, but not the same: so much less is required as the test measures.
$KTRXER_ADVERSARY_S: the length of the attack (24; `make soak` takes 600).
"""

import contextlib
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import adversary
import pytest
from flows import MS, Run, S, command
from ktrxer_lab.bench.contest import stolen_ms
from noise import LIMIT_S
from stamps import parse
from waiting import waited_ns

SECONDS = int(os.environ.get("KTRXER_ADVERSARY_S", "24"))
ROUND_S, QUIET_S = 4, 2  # length of an attack, and of the pause after it
SETTLED_NS = 300 * MS  # time until the queues of the previous phase are empty


@pytest.fixture
def three_hosts(pair):
    from ktrxer_lab import hosts

    a, b = pair
    with hosts.Netns("c") as c:
        hosts.join(c, b, net=79, devices=("c1", "b1"))
        c.ip("route", "add", "local", "10.80.0.0/16", "dev", "lo")
        for network in ("10.80.0.0/16", "198.18.0.0/15"):
            b.ip("route", "add", network, "via", "10.79.0.1")
        yield a, b, c


@pytest.fixture
def urgent():
    """High priority for the server and the honest clients, if the system permits it; the hostile clients lower theirs."""
    policy, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    yield
    os.sched_setscheduler(0, policy, parameter)


@dataclass
class Phase:
    begin_ns: int
    end_ns: int
    starved: dict[str, float]  # of the honest clients: the share of this time in which one of their ends had no processor


class Honest:
    """One STAMP session and one flow at once."""

    def __init__(self, a, b, ktrxer, token, seconds, server):
        self.seconds, self.server = seconds, server
        self.children = {
            "stamp": a.popen([ktrxer, "stamp", b.address, "-i", "5ms", "--for", f"{seconds}s", "--jsonl"], stdout=subprocess.PIPE),
            "flow": a.popen([*command(ktrxer, token, "down", b.address, "--bitrate", "4M", "--for", f"{seconds}s"), "--sample-interval", "50ms", "--jsonl"]),
        }
        self.said = {}
        self.readers = [threading.Thread(target=self.read, args=name) for name in self.children.items()]
        for reader in self.readers:
            reader.start()

    def read(self, name, child):
        self.said[name] = child.communicate(timeout=self.seconds + 60)

    def starved_ns(self):
        """For so long the ends of each client had no processor, up to now."""
        others = waited_ns(self.server.process.pid) + stolen_ms() * MS // len(os.sched_getaffinity(0))
        return {name: waited_ns(child.pid) + others for name, child in self.children.items()}

    def phase(self, seconds):
        begin_ns, before = time.monotonic_ns(), self.starved_ns()
        time.sleep(seconds)  # the length of a phase, not a wait for an event
        end_ns, after = time.monotonic_ns(), self.starved_ns()
        return Phase(begin_ns, end_ns, {name: min(1, (after[name] - before[name]) / (end_ns - begin_ns)) for name in after})

    def wait(self):
        for reader in self.readers:
            reader.join()
        self.stamp, kinds = parse(self.said["stamp"][0])
        self.flow = Run(*self.said["flow"][:1])
        self.samples = kinds["round_trip"]

    def median_us(self, value, phases):
        """Of the round trips with a processor at both ends: the others are slower."""
        found = sorted(value(one) for one in self.samples for p in phases if p.begin_ns + SETTLED_NS < one["sent_ns"] < p.end_ns)
        assert len(found) > 100 * len(phases), f"{len(found)} samples in {len(phases)} phases"
        served = 1 - statistics.mean(p.starved["stamp"] for p in phases)
        return found[int(len(found) * served / 2)] / 1000

    def rate_bps(self, phases):
        """Of the flow, by the samples of its receiver."""
        series = [(one["time_ns"], one["bytes"]) for one in self.flow.samples(end="local")]
        parts = [[one for one in series if p.begin_ns + SETTLED_NS < one[0] < p.end_ns] for p in phases]
        first, last = zip(*((part[0], part[-1]) for part in parts), strict=True)
        return sum(b[1] - a[1] for a, b in zip(first, last, strict=True)) * 8 * S / sum(b[0] - a[0] for a, b in zip(first, last, strict=True))


def signal_all(attacks, number):
    for kind, child in attacks.items():
        assert child.poll() is None, f"{kind} has ended by itself: {child.communicate()[1]}"
        child.send_signal(number)


def test_hostile_clients_beside_honest_ones(urgent, three_hosts, ktrxer, serve, token):
    a, b, c = three_hosts
    rounds = max(2, SECONDS // ROUND_S)
    signal.alarm(LIMIT_S + 2 * SECONDS)
    server = serve(b, "--token-file", token, "--owamp-port", adversary.OWAMP_PORT, "--udpstp-port", adversary.UDPSTP_PORT)
    script = Path(__file__).with_name("adversary.py")
    attacks = {kind: c.popen([sys.executable, script, kind, "10.79.0.2", token]) for kind in adversary.KINDS}
    for kind, child in attacks.items():
        assert child.stdout.readline() == "begun\n", f"{kind}: {child.communicate()[1]}"
    signal_all(attacks, signal.SIGSTOP)
    honest = Honest(a, b, ktrxer, token, rounds * (ROUND_S + QUIET_S) + 4, server)
    phases = {True: [], False: []}
    for hostile in [False, True] * rounds:
        signal_all(attacks, signal.SIGCONT if hostile else signal.SIGSTOP)
        phases[hostile].append(honest.phase(ROUND_S if hostile else QUIET_S))
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
    rates = {hostile: honest.rate_bps(phases[hostile]) for hostile in phases}
    starved = {name: {hostile: statistics.mean(p.starved[name] for p in phases[hostile]) for hostile in phases} for name in honest.children}
    for name, of in {**medians, "rate": rates, **starved}.items():
        print(f"{name}: {of[False]:.3f} without and {of[True]:.3f} with hostile clients")
    (one,) = honest.flow.flows
    print(f"{honest.stamp['sent']} probes, {honest.stamp['lost']} lost; flow {one['bytes']} bytes; load {os.getloadavg()}")
    print({name: value for name, value in honest.stamp.items() if name in ("lost", "lost_up", "lost_down", "lost_unknown", "too_late", "unanswered_at_end", "reasons")})
    others = {name: server.end[name] for name in ("owamp", "capacity")}
    print(f"actions {actions}; {counts}; {flows}; {others}; log lines left out {server.end['log_lines_left_out']}")
    # The attacks took place, and the server counted each.
    seconds = rounds * ROUND_S
    assert all(done >= seconds for done in actions.values()), actions
    assert flows["pending_displaced"] + flows["pending_slow"] > 10 * seconds and flows["refused"]["wrong_token"] > seconds
    assert flows["refused"]["malformed"] > 0 and counts["too_short"] > seconds and counts["rate"] > seconds and counts["sessions"] > 1000
    assert others["owamp"]["refused"] > 10 * seconds and others["capacity"]["refused"] > 10 * seconds and others["capacity"]["tests"] == 0
    # The honest clients are not affected; the server counts each lost answer.
    assert all(of[True] < 1.2 * of[False] for of in medians.values()), medians
    assert honest.stamp["lost"] <= counts["lost_in_socket"], honest.stamp
    assert one["error"] is None and rates[True] > 0.95 * rates[False], (rates, starved)
