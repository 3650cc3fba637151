# SPDX-License-Identifier: MIT OR Apache-2.0
"""A router whose queue is longer than the time-out of `trace`: the hosts behind it are slow, not silent. Reference: iputils' ping through the same queue."""

import json
import re

import pytest


@pytest.mark.parametrize("timeout", ["1s", "5s"])
def test_answers_after_the_time_out(path, timeout):
    for host in (path.r, path.b):
        host.sysctl("ipv4/icmp_ratelimit", 0)  # the flow that fills the queue gets ICMP errors, too
    path.shape("rb", 2, 400_000)  # 1.6 s
    with path.filled(path.a):
        message = path.a.run(["ping", "-n", "-i", "0.2", "-c", "20", "-W", "5", "10.78.0.2"], check=False, timeout=60).stdout
        done = path.a.run([path.ktrxer, "trace", "10.78.0.2", "--one-route", "--timeout", timeout, "--json"], check=False, timeout=90)
    reference = max(map(float, re.findall(r" time=([0-9.]+) ms", message)))
    end = json.loads(done.stdout)
    late = any("answers came after the time-out of 1.000 s: their hops count as silent" in reason["text"] for reason in end["reasons"])
    print(f"figure: by ping up to {reference:.0f} ms; arrived {end['arrived']}; {end['reasons']}")
    assert reference > 1200, "the queue of the reference is no queue"
    assert late == (timeout == "1s") == (not end["arrived"])
    assert not any("did not answer" in reason["text"] for reason in end["reasons"])
    assert end["verdict"] != "valid" or not late
