# SPDX-License-Identifier: MIT OR Apache-2.0
"""The live engine with a missing feature or a removed device: a message of one line with a remedy, counts that add up, nothing left behind.

a0 10.77.0.1 ---- b0 10.77.0.2
"""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from far_end import closes, flowing, gro
from noise import degraded
from shims import shim
from test_live import begun_since, child_of, live_threads, programs, wait_until_gone
from waiting import has_run

pytestmark = pytest.mark.usefixtures("live")


@pytest.fixture
def as_kernel(ktrxer):
    """env words that make this kernel look like another one."""
    path = shim(ktrxer, "bpf_shim")
    return lambda kind: ("env", f"KTRXER_BPF_SHIM={kind}", f"LD_PRELOAD={path}")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("no-live", "this kernel does not run XDP programs with live frames (Invalid argument): it needs Linux 5.18; use the packet engine"),
        ("no-bpf", "this kernel has no bpf() call (CONFIG_BPF_SYSCALL): use the packet engine"),
        ("no-map-memory", "no memory for the live engine"),
    ],
)
def test_a_kernel_that_lacks_it_is_told_in_one_line(live, pair, ktrxer, as_kernel, kind, words):
    a, b = pair
    assert words in live.refusal(a, "--count", 1, wrap=as_kernel(kind))
    # auto takes the next best
    done = a.run([*as_kernel(kind), ktrxer, "send", "--device", a.device, b.address, "--count", "100", "--json"], check=False)
    result = json.loads(done.stdout)
    assert result["sent"] == 100 and result["engine"] != "live"


def test_kernel_btf_is_not_needed(live, pair):
    a, b = pair
    hide = "[ ! -e /sys/kernel/btf ] || mount -t tmpfs none /sys/kernel/btf; [ ! -e /sys/kernel/btf/vmlinux ] || exit 9; exec \"$@\""
    done = a.run(["unshare", "-m", "sh", "-c", hide, "sh", *live.words(a, b.address, "--count", 100, "--vary", "ttl=counter", "--json")])
    assert json.loads(done.stdout)["departure_stamp"]["driver"] == 100


@pytest.mark.parametrize("options", [["--interval", "1ms", "--for", "20s"], ["--for", "20s"]], ids=["timed", "template"])
def test_without_tracepoints_statistics_tell_what_is_missing(live, pair, as_kernel, options):
    a, b = pair
    words = [*as_kernel("no-tracepoint"), *live.words(a, b.address, *options, "--json")]
    child = a.popen(words)
    flowing(a)
    gro(b, False)  # from here on its driver drops the frames without a report
    has_run(child.pid, 0.2)
    os.kill(child_of(child.pid), signal.SIGINT)
    result = json.loads(child.communicate(timeout=30)[0])
    closes(result)
    assert result["departure_stamp"] == {"nic": 0, "driver": 0, "queued": result["sent"]}
    (reason,) = (reason for reason in result["reasons"] if "no tracepoints" in reason["text"])
    missing, submitted = map(int, re.findall(r"(\d+) of (\d+) submitted frames are missing", reason["text"])[0])
    assert submitted == result["sent"]
    assert abs(b.counters()["rx"]["packets"] + missing - submitted) <= 50
    degraded(result)


def test_without_tracepoints_nothing_is_missing_where_nothing_is_lost(live, pair, as_kernel):
    a, b = pair
    done = a.run([*as_kernel("no-tracepoint"), *live.words(a, b.address, "--count", 3000, "--json")], check=False)
    result = json.loads(done.stdout)
    assert result["departure_stamp"]["queued"] == result["sent"] == 3000
    assert not any("no tracepoints" in reason["text"] for reason in result["reasons"])


@pytest.mark.parametrize("kind", ["bridge", "ifb", "macvlan"])
def test_a_driver_that_takes_no_redirected_frames(live, pair, ktrxer_json, kind):
    a, _ = pair
    where = ["link", a.device] if kind == "macvlan" else []
    try:
        a.ip("link", "add", *where, "name", "odd0", "type", kind)
    except RuntimeError as error:
        pytest.skip(f"no {kind} in this kernel: {error}")
    a.ip("link", "set", "odd0", "up")
    reason = live.doctor(a, "odd0")["reason"]
    assert f"the driver of 'odd0' ({kind}) takes no redirected frames" in reason and "use the packet engine" in reason


def test_a_template_killed_in_mid_run_leaves_nothing(live, pair):
    a, b = pair
    before = programs()
    child = a.popen(live.words(a, b.address, "--for", "60s"))
    flowing(a)
    pid = child_of(child.pid)
    assert live_threads(pid) >= 3
    made = begun_since(before)
    assert {"stream_next", "stream_taken"} <= set(made.values())
    os.kill(pid, signal.SIGKILL)
    child.communicate(timeout=10)
    wait_until_gone(made)
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("fault", [("link", "set", "a0", "down"), ("link", "del", "a0")], ids=["down", "removed"])
@pytest.mark.parametrize("options", [["--for", "20s"], ["--count", 10**12, "--threads", 2]], ids=["open", "counted"])
def test_the_device_goes_below_a_template(live, pair, fault, options):
    a, b = pair
    child = a.popen(live.words(a, b.address, *options, "--json"))
    flowing(a)
    a.ip(*fault)
    began = time.monotonic()
    out, _ = child.communicate(timeout=30)
    assert time.monotonic() - began < 5
    assert child.returncode == 3
    result = json.loads(out)
    closes(result)
    assert result["sent"] > 0
    if "--count" in options:
        assert result["failed"] == 10**12 - result["sent"]
    assert any("is gone" in reason["text"] or "went down" in reason["text"] for reason in result["reasons"]), result["reasons"]


def test_a_template_stops_when_it_is_told(live, pair):
    a, b = pair
    child = a.popen(live.words(a, b.address, "--count", 10**12, "--json"))
    flowing(a)
    os.kill(child_of(child.pid), signal.SIGINT)
    began = time.monotonic()
    result = json.loads(child.communicate(timeout=10)[0])
    assert time.monotonic() - began < 3
    closes(result)
    assert result["requested"] == 10**12 and result["sent"] > 0
    assert result["cancelled"] == 10**12 - result["sent"]


def test_more_threads_than_processors(live, pair):
    assert "may use" in live.refusal(pair[0], "--count", 1, "--threads", 200)
