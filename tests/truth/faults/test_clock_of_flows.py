# SPDX-License-Identifier: MIT OR Apache-2.0
"""The server's clock is stepped or slewed while a flow runs. Reference: the change itself.

`ktrxer flow` converts the server's times by the offset of the two CLOCK_MONOTONIC, which no step changes. clock_shim.c changes the clock of the
server's process.
"""

import json
import struct
import time

import pytest

MS = 1_000_000
RATE_MBIT = 20
SECONDS = 3


@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize(
    ("fault", "reported"),
    [({}, False), ({"STEP_NS": 8 * MS}, False), ({"SLEW_PPM": 450, "BACK_MS": 60_000}, False), ({"SLEW_PPM": 20_000, "BACK_MS": 60_000}, True)],
    ids=str,
)
def test_the_servers_clock_is_changed(path, serve, ktrxer, tmp_path, direction, fault, reported):
    built, at = ktrxer.parents[1] / "tests" / "system" / "clock_shim.so", tmp_path / "clock"
    if not built.exists():
        pytest.skip("clock_shim.so is not built here (32 bits, or a sanitizer)")
    at.write_bytes(bytes(8))
    for device in ("ra", "rb"):
        path.shape(device, RATE_MBIT, 50_000)
    shim = ["env", f"LD_PRELOAD={built}", f"CLOCK_SHIM_AT={at}", *(f"CLOCK_SHIM_{name}={value}" for name, value in fault.items())]
    serve(path.b, "--token-file", path.token, prefix=shim)
    words = [path.ktrxer, "flow", direction, "10.78.0.2", "--token-file", path.token, "--for", f"{SECONDS}s", "--sample-interval", "100ms", "--jsonl"]
    child = path.a.popen(list(map(str, words)))
    begun = samples = 0
    for line in child.stdout:
        end = json.loads(line)
        samples += end["type"] == "sample"
        if samples >= 10 and not begun:
            begun = time.monotonic_ns()
            with at.open("r+b") as file:
                file.write(struct.pack("=q", time.time_ns()))
    child.wait()
    clock, rate = end["clock"], end["flows"][0]["rate_bps"] / 1e6
    truth_ns = (clock["at_ns"] - begun) * fault.get("SLEW_PPM", 0) // 1_000_000
    apart = f"the server's clock is {clock['offset_ns'] / 1e6:.3f} +- {clock['bound_ns'] / 1e6:.3f} ms ahead"
    print(f"figure: {apart}, in truth {truth_ns / 1e6:.3f} ms; {rate:.2f} Mbit/s; {end['reasons']}")
    named = any("the monotonic clock of one of the hosts jumped, or was slewed by more than 600 ppm" in reason["text"] for reason in end["reasons"])
    assert begun and named == reported
    assert reported or abs(clock["offset_ns"] - truth_ns) <= clock["bound_ns"] < 5 * MS
    # The tbf counts Ethernet frames: 1448 bytes of data in 1514. Its rate is less than its limit if the machine holds up the router.
    passed = path.counted("rb" if direction == "up" else "ra")["bytes"] * 8 / SECONDS / 1e6
    assert rate == pytest.approx(passed * 1448 / 1514, rel=0.06) and passed < 1.06 * RATE_MBIT
