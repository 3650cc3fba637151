# SPDX-License-Identifier: MIT OR Apache-2.0
"""The receiver of `capacity` stands still, and its socket keeps the datagrams: no more has arrived in any second than was sent. Reference: the fixed rate.
Its sender stands still, or its own process has no processor: the cause is named. References: the stop itself, and the kernel's run delay."""

import json
import os
import time

import pytest
from noise import before_others
from real_time_work import pin, real_time_work
from waiting import read_until, stand_still, waited_ns


@pytest.mark.parametrize("stopped_s", [0, 1])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_the_receiver_stands_still(path, serve, direction, stopped_s):
    """Row 20 is 20 Mbit/s."""
    server = serve(path.b, "--token-file", path.token, "--udpstp-port", 24601, prefix=before_others())
    words = ["capacity", "10.78.0.2", "--direction", direction, "--for", "5s", "--row", 20, "--token-file", path.token, "--jsonl"]
    child = path.a.popen(list(map(str, [*before_others(), path.ktrxer, *words])))
    read_until(child, lambda one: one.get("kind") == "ip_capacity")
    time.sleep(0.6)
    if stopped_s:
        stand_still(server.process if direction == "up" else child, stopped_s)
    out, err = child.communicate(timeout=60)
    assert out, err
    end = json.loads(out.splitlines()[-1])
    maximum = end[direction]["maximum"]["bit_s"]
    message = any(f"{direction}: limited by {'the server' if direction == 'up' else 'this host'}, which receives" in reason["text"] for reason in end["reasons"])
    print(f"figure: maximum {maximum / 1e6:.2f} Mbit/s; {end['reasons']}")
    # A busy machine sends less.
    assert 10e6 < maximum < 20.6e6
    assert message == bool(stopped_s)


@pytest.mark.parametrize("stopped_s", [0, 0.5])
def test_the_server_that_sends_stands_still(path, serve, stopped_s):
    """Between two datagrams with successive numbers half a second passes by both clocks."""
    server = serve(path.b, "--token-file", path.token, "--udpstp-port", 24601, prefix=before_others())
    words = ["capacity", "10.78.0.2", "--direction", "down", "--for", "5s", "--row", 20, "--token-file", path.token, "--jsonl"]
    child = path.a.popen(list(map(str, [*before_others(), path.ktrxer, *words])))
    read_until(child, lambda one: one.get("kind") == "ip_capacity")
    time.sleep(0.3)
    if stopped_s:
        stand_still(server.process, stopped_s)
    out, err = child.communicate(timeout=60)
    assert out, err
    end = json.loads(out.splitlines()[-1])
    print(f"figure: paused {end['down']['paused_ns'] / 1e6:.1f} ms, longest {end['down']['pause_max_ns'] / 1e6:.1f} ms; {end['reasons']}")
    message = any("down: limited by the server: by its own clock it sent nothing for" in reason["text"] for reason in end["reasons"])
    assert message == bool(stopped_s)
    assert not any("limited by this host" in reason["text"] for reason in end["reasons"])
    if stopped_s:
        assert 0.9 * stopped_s * 1e9 < end["down"]["pause_max_ns"] < 2 * stopped_s * 1e9


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor: nothing is left beside the hog")
@pytest.mark.parametrize("direction", ["up", "down"])
def test_the_processor_of_the_client_is_taken(path, serve, direction):
    free, taken, *_ = sorted(os.sched_getaffinity(0))
    server = serve(path.b, "--token-file", path.token, "--udpstp-port", 24601)
    pin(server.process.pid, free)
    words = ["capacity", "10.78.0.2", "--direction", direction, "--for", "5s", "--row", 20, "--token-file", path.token, "--jsonl"]
    child = path.a.popen(["taskset", "-c", str(taken), *map(str, [path.ktrxer, *words])])
    read_until(child, lambda one: one.get("kind") == "ip_capacity")
    with real_time_work(taken, 3):
        before = waited_ns(child.pid)
        time.sleep(2.5)
        waited = (waited_ns(child.pid) - before) / 1e9
        out, err = child.communicate(timeout=60)
    assert out, err
    end = json.loads(out.splitlines()[-1])
    print(f"figure: run delay {waited:.2f} s; {end['reasons']}")
    assert waited > 1.2, "the reference's process was not starved"
    named = [reason["text"] for reason in end["reasons"] if "limited by this host" in reason["text"]]
    maximum = end[direction]["maximum"]["bit_s"]
    assert named or 19e6 < maximum < 20.6e6, "the figure is right, or the host is named"


def test_what_the_servers_socket_drops_is_in_its_own_figures(path, serve):
    """The protocol has no field for it. Reference: RcvbufErrors of the server's host. 100 Mbit/s fill the socket within a second."""

    def dropped():
        head, values = (line.split() for line in path.b.run(["cat", "/proc/net/snmp"]).stdout.splitlines() if line.startswith("Udp:"))
        return int(values[head.index("RcvbufErrors")])

    server = serve(path.b, "--token-file", path.token, "--udpstp-port", 24601, prefix=before_others())
    words = ["capacity", "10.78.0.2", "--direction", "up", "--for", "5s", "--row", 100, "--token-file", path.token, "--jsonl"]
    child = path.a.popen(list(map(str, [*before_others(), path.ktrxer, *words])))
    read_until(child, lambda one: one.get("kind") == "ip_capacity")
    before = dropped()
    stand_still(server.process, 2)
    child.communicate(timeout=60)
    drops = dropped() - before
    server.stop()
    print(f"figure: RcvbufErrors {drops}, {server.end['capacity']}")
    assert drops > 100, "the reference dropped nothing"
    assert abs(server.end["capacity"]["lost_in_socket"] - drops) <= 0.02 * drops


def test_no_datagram_arrives_after_the_drops(path, serve):
    """This host stands still until the server's test has ended: a datagram has the drops before it, and none comes after these."""

    def dropped():
        head, values = (line.split() for line in path.a.run(["cat", "/proc/net/snmp"]).stdout.splitlines() if line.startswith("Udp:"))
        return int(values[head.index("RcvbufErrors")])

    serve(path.b, "--token-file", path.token, "--udpstp-port", 24601, prefix=before_others())
    words = ["capacity", "10.78.0.2", "--direction", "down", "--for", "5s", "--row", 100, "--token-file", path.token, "--jsonl"]
    child = path.a.popen(list(map(str, [*before_others(), path.ktrxer, *words])))
    read_until(child, lambda one: one.get("kind") == "ip_capacity")
    before = dropped()
    stand_still(child, 8)
    out, err = child.communicate(timeout=60)
    assert out, err
    end = json.loads(out.splitlines()[-1])
    drops = dropped() - before
    print(f"figure: RcvbufErrors {drops}, lost_in_socket {end['down']['lost_in_socket']}; {end['verdict']}: {end['reasons']}")
    assert drops > 100, "the reference dropped nothing"
    assert end["down"]["lost_in_socket"] == drops
    assert end["verdict"] != "valid" and any("this host" in reason["text"] for reason in end["reasons"])
