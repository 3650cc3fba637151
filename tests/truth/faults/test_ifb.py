# SPDX-License-Identifier: MIT OR Apache-2.0
"""A shaper of arriving packets of the measuring host, as SQM has it: its queue is before the arrival stamp of the host, so it is a part of the delay down.
Reference: iputils' ping through the queue."""

import json
import re
import statistics

from noise import before_others


def test_a_queue_of_this_hosts_ifb(path, serve):
    serve(path.b, prefix=before_others())
    path.a.ip("link", "add", "ifb9", "type", "ifb")
    path.a.ip("link", "set", "ifb9", "up")
    path.a.run(["tc", "qdisc", "add", "dev", "a0", "handle", "ffff:", "ingress"])
    redirect = ["u32", "match", "u32", "0", "0", "action", "mirred", "egress", "redirect", "dev", "ifb9"]
    path.a.run(["tc", "filter", "add", "dev", "a0", "parent", "ffff:", "protocol", "all", *redirect])
    path.shape("ifb9", 2, 25_000, path.a)  # 100 ms
    with path.filled(path.r, "10.77.0.1"):
        ping = path.a.popen(["ping", "-n", "-i", "0.1", "-c", "30", "10.78.0.2"])
        words = [*before_others(), path.ktrxer, "stamp", "10.78.0.2", "-i", "50ms", "--for", "3s", "--json"]
        end = json.loads(path.a.run(list(map(str, words)), check=False, timeout=60).stdout)
        reference = statistics.median(float(ms) for ms in re.findall(r" time=([0-9.]+) ms", ping.communicate(timeout=60)[0]))
    trip, up, down, own = (end[name]["p50"] / 1000 for name in ("rtt_us", "up_us", "down_us", "own_queue_us"))
    print(f"figure: round trip {trip:.2f} ms, by ping {reference:.2f} ms; up {up:.2f} ms, down {down:.2f} ms, own queue {own:.3f} ms")
    assert reference > 50, "the queue of the reference is no queue"
    assert abs(trip / reference - 1) < 0.1 and own < reference / 20
    # A queue that is always full leaves the offset of the clocks uncertain by half of it.
    bound = end["one_way_uncertainty_us"]["total"] / 1000
    assert bound < 0.6 * reference and up < bound + reference / 10 and down > reference * 0.9 - bound
