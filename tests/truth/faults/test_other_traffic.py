# SPDX-License-Identifier: MIT OR Apache-2.0
"""Traffic of others that has filled the path before the load, and ends under it: the load seems to add no delay. Reference: the queue by tc, and the end of
that traffic."""

import contextlib
import time

import pytest


@pytest.mark.parametrize("others", [True, False])
def test_a_path_that_was_full_before_the_load(path, serve, others):
    serve(path.b, "--token-file", path.token)
    path.shape("rb", 2, 25_000)  # 100 ms
    # A tenth more than the path carries. With 4 Mbit/s half of all packets are lost, and repeated SYNs of a connection come 1, 2, 4, 8 s apart:
    # a run did not begin within 20 s.
    with path.filled(path.r, mbit=2.2) if others else contextlib.nullcontext():
        child = path.start("tcp_upload", "--for", "4", "--delay", "3", "-i", "20ms", "--no-extras")
        path.wait_for_run()
        time.sleep(2.5)
        backlog = path.counted("rb")["backlog"]
        time.sleep(2)  # the load has begun
    made = path.result(child)
    message = made.says("the idle ICMP round trips before and after the load are apart", "other traffic filled the path")
    print(f"figure: backlog before the load {backlog} bytes; {made.reasons}")
    assert (backlog > 15_000) == others, "the reference: the queue before the load"
    assert (made.summary.grade is None) == others, "which idle round trip would it compare with?"
    assert message == others and (made.verdict != "valid" or not others)
