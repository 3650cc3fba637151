# SPDX-License-Identifier: MIT OR Apache-2.0
"""Real-time work of another process has the processor of the prober, or of the reflector. References: the run delay of the process, which the kernel
counts, and for the reflector the share of time that the other work leaves free."""

import contextlib
import json
import os

import pytest
from real_time_work import pin, pin_commands, real_time_work
from waiting import read_until, stand_still, waited_ns

PATH_MS = 1  # the median round trip of this path without a delay is shorter


def check_figures(end):
    """The figures hold within their bounds. If a bound is wide, the sentence names the cause; else the result is valid."""
    wide = [one for one in end["bounds"] if one["bound"] is None or one["bound"] > one["tolerance"]]
    named = [one for one in end["reasons"] if one["id"].startswith("bound_")]
    print(f"figure: {end['bounds']}; {end['reasons']}")
    assert len(wide) == len(named) and (wide or end["verdict"] == "valid"), end["reasons"]
    assert all(any(words in one["why"] for words in ("probes were skipped", "the reflector held probes")) for one in named), named
    trip, loss = end["bounds"]
    assert trip["value"] - (trip["bound"] or 0) <= 1000 * PATH_MS, "the waits of a process are no delay of the path"
    assert loss["value"] <= loss["bound"], "the path lost nothing"


pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor: nothing is left beside the other work")


@pytest.mark.parametrize("command", ["ping", "stamp"])
def test_a_prober_that_waits_for_its_processor(path, serve, command):
    free, taken, *_ = sorted(os.sched_getaffinity(0))
    server = serve(path.b)
    pin(server.process.pid, free)
    with real_time_work(taken, 2.5):
        words = ["taskset", "-c", str(taken), path.ktrxer, command, "10.78.0.2", "-i", "5ms", "--for", "1500ms", "--jsonl", "--brief"]
        child = path.a.popen(list(map(str, words)))
        waits = []
        for line in child.stdout:
            end = json.loads(line)
            with contextlib.suppress(OSError):
                waits.append(waited_ns(child.pid) / 1e6)
        child.wait()
        # Since the first line was read here, which other work of the machine delays; and of the whole process, with its start.
        reference, most = waits[-1] - waits[0], waits[-1]
    print(f"figure: run delay of the {command} {reference:.1f} to {most:.1f} ms; host {end['host']}; {end['reasons']}")
    assert reference > 300, "the reference's process was not starved"
    assert 0.8 * reference - 50 <= end["host"]["processor_wait_ms"] <= 1.2 * most + 50
    assert end["late"] > 0.1 * end["sent"]
    check_figures(end)


@pytest.mark.parametrize("command", ["ping", "stamp"])
def test_a_prober_that_is_stopped(path, serve, command):
    """By a signal, or with its virtual machine: it waits for no processor, and no timer is late."""
    serve(path.b)
    child = path.a.popen(list(map(str, [path.ktrxer, command, "10.78.0.2", "-i", "10ms", "-c", "200", "--jsonl"])))
    read_until(child, lambda one: one.get("number") == 50)
    stand_still(child, 0.7)
    end = json.loads(child.communicate(timeout=30)[0].splitlines()[-1])
    print(f"figure: {end['reasons']}")
    assert end["lateness_us"]["max"] > 600_000, "the reference: the stop itself"
    assert end["late"] > 0 and all(one["id"] == "bound_wide" for one in end["reasons"]) and end["rtt_us"]["p50"] < 1000 * PATH_MS


def test_a_reflector_that_waits_for_its_processor(path, serve):
    free, taken, *_ = sorted(os.sched_getaffinity(0))
    server = serve(path.b)
    pin(server.process.pid, taken)
    with real_time_work(taken, 2.5):
        words = ["taskset", "-c", str(free), path.ktrxer, "stamp", "10.78.0.2", "-i", "5ms", "--for", "1500ms", "--json"]
        end = json.loads(path.a.popen(list(map(str, words))).communicate(timeout=30)[0])
    print(f"figure: dwell max {end['dwell_max_ns'] / 1e6:.1f} ms, round trip {end['rtt_us']}; lateness {end['lateness_us']}; {end['reasons']}")
    assert end["dwell_max_ns"] > 20e6, "the reflector was not starved"
    assert end["rtt_us"]["p99"] < 10_000, "the time for which the reflector held a probe is no delay of the path"
    check_figures(end)


def test_both_ends_wait_for_their_processors(path, serve):
    here, there, *_ = sorted(os.sched_getaffinity(0))
    server = serve(path.b)
    pin(server.process.pid, there)
    # A probe leaves in the 10 ms that the work leaves here; the processor there is busy for the next 20 ms or more.
    with real_time_work(here, 2.5), real_time_work(there, 2.5, phase=0.03):
        words = ["taskset", "-c", str(here), path.ktrxer, "stamp", "10.78.0.2", "-i", "5ms", "--for", "1500ms", "--json"]
        end = json.loads(path.a.popen(list(map(str, words))).communicate(timeout=30)[0])
    print(f"figure: dwell max {end['dwell_max_ns'] / 1e6:.1f} ms; {end['host']}; {end['reasons']}")
    assert end["dwell_max_ns"] > 20e6 and end["host"]["processor_wait_ms"] > 300, "one of the two was not starved"
    check_figures(end)


def test_a_run_names_the_host_whose_probers_wait(path, serve):
    free, taken, *_ = sorted(os.sched_getaffinity(0))
    server = serve(path.b, "--token-file", path.token)
    pin(server.process.pid, free)
    child = path.start("ping", "--for", "3", "--delay", "0.2", "-i", "10ms", "--no-extras")
    path.wait_for_samples(100)
    pin_commands(path.ktrxer, ["ping", "stamp"], taken)
    with real_time_work(taken, 2.5):
        made = path.result(child)
    assert made.verdict == "valid" or made.says("can be wrong by"), "late probes have true delays"
