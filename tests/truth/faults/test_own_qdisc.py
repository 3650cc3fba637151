# SPDX-License-Identifier: MIT OR Apache-2.0
"""A shaper on the measuring host: its drops are counted, and its change during the run is reported. References: the counters of tc, and the change."""

import json

import pytest


def test_what_this_hosts_own_shaper_drops(path, serve):
    path.shape("a0", 4, 20_000, path.a)
    serve(path.b, "--token-file", path.token)
    made = path.measure("tcp_upload", "--for", "3", "--delay", "1", "-i", "50ms")
    reference = path.drops("a0", path.a)
    found = made.summary.own_drops
    print(f"figure: by tc {reference} packets dropped; the run says {found}")
    assert reference > 0, "the shaper dropped nothing"
    assert (found.device, found.qdisc, found.dropped) == ("a0", "tbf", reference)
    assert any(line.startswith(f"this host's own qdisc  tbf of a0 dropped {reference} ") for line in made.lines)
    assert not made.says("qdisc", "changed"), "a shaper that drops TCP by design is no fault"


@pytest.mark.parametrize(("before", "kinds"), [(None, ("noqueue", "tbf")), (10, ("tbf", "noqueue")), (20, ("tbf",))])
def test_a_shaper_that_is_added_removed_or_changed_in_mid_run(path, serve, before, kinds):
    if before:
        path.shape("a0", before, 50_000, path.a)
    serve(path.b, "--token-file", path.token)
    child = path.start("ping", "--for", "3", "--delay", "0.2", "-i", "10ms")
    path.wait_for_samples(200)
    if kinds == ("tbf", "noqueue"):
        path.a.run(["tc", "qdisc", "del", "dev", "a0", "root"])
    else:
        path.shape("a0", 5, 50_000, path.a)
    made = path.result(child)
    assert made.verdict != "valid"
    message = f"(from {kinds[0]} to {kinds[1]})" if len(kinds) == 2 else "(tbf has other parameters or another handle)"
    assert made.says("the qdisc of this host's device a0 was changed during the run", message)


@pytest.mark.parametrize("command", ["ping", "stamp"])
def test_an_own_queue_that_is_long_from_the_start(path, serve, command):
    """The first stamp of the driver comes after the length of the queue. Until then the memory of the socket shows that packets wait in it."""
    path.shape("a0", 2, 125_000, path.a)
    serve(path.b)
    with path.filled(path.a):
        end = json.loads(path.a.run([path.ktrxer, command, "10.78.0.2", "-i", "50ms", "-c", "20", "-W", "5s", "--json"], check=False).stdout)
    stamps = end if command == "ping" and "sent_queued" in end else end["stamps"]
    print(f"figure: {end['rtt_us']}, own queue {end['own_queue_us']}; {stamps}; {end['reasons']}")
    assert end["rtt_us"]["p50"] > 200_000, "the queue of the reference is no queue"
    assert stamps["sent_queued"] <= 20 - end["received"] <= 2, "answered probes have their stamps"
    assert end["own_queue_us"]["min"] > 100_000, "the wait of the first probes is in the own queue"
    assert not any("left this host" in reason["text"] or "did not leave" in reason["text"] for reason in end["reasons"])
