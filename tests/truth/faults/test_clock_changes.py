# SPDX-License-Identifier: MIT OR Apache-2.0
"""The clock of the reflector is stepped or slewed in the middle of `ktrxer run`. Those of `ktrxer stamp` are in tests/virtual/test_clock_changes.py.

The machine's clock is shared by all hosts here, so clock_shim.c changes it for one process: CLOCK_REALTIME, CLOCK_MONOTONIC where the clock is slewed,
and the stamps of the kernel, but not CLOCK_MONOTONIC_RAW, as a kernel does.
"""

import statistics
import struct
import time

import pytest
from shims import shim

MS = 1_000_000


class ChangedClock:
    """The words before a command whose clock is to be changed; begin() changes it from now on."""

    def __init__(self, built, at):
        self.built, self.at = built, at
        at.write_bytes(bytes(8))

    def words(self, fault):
        return ["env", f"LD_PRELOAD={self.built}", f"CLOCK_SHIM_AT={self.at}", *(f"CLOCK_SHIM_{name}={value}" for name, value in fault.items())]

    def begin(self):
        with self.at.open("r+b") as file:
            file.write(struct.pack("=q", time.time_ns()))


@pytest.fixture
def clock(ktrxer, tmp_path):
    return ChangedClock(shim(ktrxer), tmp_path / "clock")


@pytest.mark.parametrize("fault", [{"STEP_NS": 8 * MS}, {"SLEW_PPM": 2000, "BACK_MS": 1000}], ids=str)
def test_a_run_names_the_clock(path, serve, clock, fault):
    serve(path.b, "--token-file", path.token, prefix=clock.words(fault))
    child = path.start("ping", "--for", "6", "--delay", "0.2", "-i", "10ms", "--no-extras")
    path.wait_for_samples(200)
    clock.begin()
    made = path.result(child)
    assert made.verdict != "valid" and made.says("the clock of the reflector was stepped, or slewed")
    latency = made.run.table("latency")
    delays = [delay for delay in latency.column("up_ns").to_pylist() if delay is not None]
    print(f"figure: {len(delays)} delays up, p50 {statistics.median(delays) / 1000:.1f} us; {made.reasons}")
    # The reflector's adjustment is read between the arrival of a request and its answer. While the clock is slewed by more than any daemon slews it,
    # a reflector without a processor has no exact adjustment, and the clocks are seen to differ.
    assert len(delays) > 400
    assert statistics.median(delays) < MS
