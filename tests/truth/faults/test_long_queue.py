# SPDX-License-Identifier: MIT OR Apache-2.0
"""A queue of seconds: packets in it are not lost. References: tcpdump on both sides of the router."""

import re

import pytest

MBIT, LIMIT = 2, 500_000  # 2 s

UPLOADS_AND_BOTH_PROBES = """
from ktrxer.catalogue.recipe import NoParameters, Plan, Setting, Test, combine, icmp, udp, uploads
def plan(setting: Setting, _: NoParameters) -> Plan:
    return combine(icmp(setting), udp(setting, "Ping (ms) UDP"), uploads(setting, [f"TCP upload::{n}" for n in range(4)]))
TEST = Test("mine", "four uploads, and probes of two kinds", plan)
"""


class Watch:
    """tcpdump of the requests on one device; passed() returns their times."""

    def __init__(self, host, device, file):
        self.file = file
        requests = "src host 10.77.0.1 and (udp dst port 8620 or icmp[icmptype] == icmp-echo)"
        command = ["tcpdump", "-n", "-tt", "-l", "-s", "80", "--immediate-mode", "-i", device, requests]
        self.child = host.popen(command, stdout=file.open("w"))
        while "listening" not in (line := self.child.stderr.readline()):
            assert line, "tcpdump does not start"

    def passed(self):
        self.child.terminate()
        self.child.wait()
        echoes, datagrams = {}, 0
        for line in self.file.read_text().splitlines():
            if found := re.match(r"(\d+\.\d+) IP .* ICMP echo request, id (\d+), seq (\d+)", line):
                echoes[int(found[2]), int(found[3])] = float(found[1])
            datagrams += ": UDP, length" in line
        return echoes, datagrams


def test_what_waits_for_two_seconds_is_not_lost(path, serve, tmp_path):
    path.shape("rb", MBIT, LIMIT)
    serve(path.b, "--token-file", path.token)
    (tmp_path / "own.py").write_text(UPLOADS_AND_BOTH_PROBES)
    watches = [Watch(host, device, tmp_path / device) for host, device in ((path.r, "ra"), (path.b, "b0"))]
    made = path.measure(tmp_path / "own.py", "--for", "6", "--delay", "4", "-i", "50ms", "--no-extras")
    (before, sent), (after, came) = (watch.passed() for watch in watches)
    waits = [after[key] - before[key] for key in after]
    print(f"figure: by tcpdump {len(before)} echoes, {len(before) - len(after)} lost, wait max {max(waits):.3f} s; {sent} UDP probes, {sent - came} lost")
    assert max(waits) > 1.2, "the reference's queue is no queue"

    lost = {kind: sum(int((made.run.arrays(made.run.series(name))["state"] == state).sum()) for state in (1, 2, 3))
            for kind, name in (("ICMP", "Ping (ms) ICMP"), ("UDP", "Ping (ms) UDP"))}
    assert lost == {"ICMP": len(before) - len(after), "UDP": sent - came}, "lost is what did not pass the router"
    icmp = next(one for one in made.summary.latency if one.name == "round trip" and one.probes == "ICMP")
    assert icmp.loaded.max == pytest.approx(1000 * max(waits), rel=0.05)
    assert icmp.loaded.lost <= lost["ICMP"] and icmp.idle.lost == 0
    assert sum(one.lost for one in made.summary.loss) == sum(lost.values())
    # The queue drains after the load in its own phase, which does not count as idle.
    drain = made.run.meta.phase("drain")
    last = max(at + after[key] - before[key] for key, at in before.items() if key in after and after[key] - before[key] > 0.2)
    zero = made.run.meta.zero.realtime_ns
    assert drain is not None and drain.to_ns - drain.from_ns > 0.5e9
    assert drain.to_ns / 1e9 == pytest.approx(last - zero / 1e9, abs=0.5), "it ends when the last packet that waited has left"
    after_idle = made.run.meta.phase("idle_after")
    arrays = made.run.arrays(made.run.series("Ping (ms) ICMP"))
    idle = arrays["rtt_ns"][(arrays["t_ns"] >= after_idle.from_ns) & (arrays["state"] == 0)]
    assert len(idle) and idle.max() < 50e6
    assert made.summary.grade.letter == "F"
