# SPDX-License-Identifier: MIT OR Apache-2.0
"""Probes beside flows leave on time. Reference: the lateness of a plain sleep in the same seconds, on the same machine with the same load."""

import statistics
import time

from noise import plain_sleeps

TRIES = 3  # other work of this machine may delay one of the two


def test_probes_beside_flows_are_earlier_than_a_plain_sleep(path, serve):
    serve(path.b, "--token-file", path.token)
    path.shape("rb", 20, 50_000)
    ratios = []
    while len(ratios) < TRIES and min(ratios, default=1) > 0.5:
        child = path.start("tcp_upload", "--for", "3", "--delay", "0.2", "-i", "10ms", "--no-extras")
        path.wait_for_samples(20)
        with plain_sleeps(10_000_000) as late:
            time.sleep(2.5)  # the load
        plain_us = statistics.median(late) / 1000
        ours_us = path.result(child).summary.lateness_us.p50
        ratios.append(ours_us / plain_us)
        print(f"figure: probes leave {ours_us:.1f} us late, a sleep ends {plain_us:.1f} us late")
    assert min(ratios) < 0.5, ratios
