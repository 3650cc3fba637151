# SPDX-License-Identifier: MIT OR Apache-2.0
"""The shaper of this host is below a virtual device, to which the route leads: its drops and its change belong to the result. References: tc, the change."""

import pytest


def macvlan(a):
    a.ip("link", "add", "v0", "link", "a0", "type", "macvlan", "mode", "bridge")
    a.ip("addr", "flush", "dev", "a0")


def bridge(a):
    a.ip("link", "add", "v0", "type", "bridge")
    a.ip("addr", "flush", "dev", "a0")
    a.ip("link", "set", "a0", "master", "v0")


@pytest.fixture(params=[macvlan, bridge])
def virtual(path, request):
    request.param(path.a)
    path.a.ip("addr", "add", "10.77.0.1/24", "dev", "v0")
    path.a.ip("link", "set", "v0", "up")
    path.a.ip("route", "add", "10.78.0.0/24", "via", "10.77.0.2")
    return path


def test_what_the_shaper_below_drops(virtual, serve):
    virtual.shape("a0", 4, 20_000, virtual.a)
    serve(virtual.b, "--token-file", virtual.token)
    made = virtual.measure("tcp_upload", "--for", "3", "--delay", "1", "-i", "50ms")
    reference = virtual.drops("a0", virtual.a)
    found = made.summary.own_drops
    print(f"figure: by tc {reference} packets dropped; the run says {found}; {made.summary.where}")
    assert reference > 0, "the shaper dropped nothing"
    assert found is not None and (found.device, found.qdisc, found.dropped) == ("a0", "tbf", reference)


def test_the_shaper_below_is_changed_in_mid_run(virtual, serve):
    virtual.shape("a0", 20, 50_000, virtual.a)
    serve(virtual.b, "--token-file", virtual.token)
    child = virtual.start("ping", "--for", "3", "--delay", "0.2", "-i", "10ms")
    virtual.wait_for_samples(200)
    virtual.shape("a0", 5, 50_000, virtual.a)
    made = virtual.result(child)
    assert made.verdict != "valid"
    assert made.says("the qdisc of this host's device a0 was changed during the run (tbf has other parameters or another handle)")
