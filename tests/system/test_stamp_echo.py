# SPDX-License-Identifier: MIT OR Apache-2.0
"""
`ktrxer stamp --echo`: ICMP echo beside the UDP probes, in one process. Two hosts as in test_stamp.py. Counters of nftables in B are the
reference for what arrived there.
"""

import json
import os
import re
import shutil
import signal
import statistics
import time

import pytest
from noise import reasons
from recorded import wrong
from waiting import until

CLASSES = ["--dscp", "be,cs1,ef"]


@pytest.fixture
def both(ktrxer):
    """(end of the UDP probes, end of the echo, all objects, exit status)"""

    def go(a, *options, status=None):
        done = a.run([ktrxer, "stamp", *map(str, options), "--echo", "--jsonl"], check=False, timeout=60)
        assert status is None or done.returncode == status, f"{done.stdout[-2000:]}{done.stderr}"
        return (*ends(done.stdout), done.returncode)

    return go


def ends(text):
    """A part of the output that was read before is left out; the rest may begin within a line."""
    objects = [json.loads(line) for line in text.splitlines() if line.startswith("{") and line.endswith("}")]
    echo, stamp = (one for one in objects if one["type"] == "end")
    assert echo["of"] == "ping" and "of" not in stamp and objects[-1] is stamp
    return stamp, echo, objects


def trips(objects, of=None):
    return {(one["number"], one.get("class")): one for one in objects if one.get("kind") == "round_trip" and one.get("of") == of}


def rules(host, *lines):
    host.run(["nft", "-f", "-"], input="\n".join(["table inet echo {", "chain in { type filter hook input priority 0;", *lines, "}", "}"]))


def packets(host):
    """By protocol, as nftables has counted them."""
    told = host.run(["nft", "list", "table", "inet", "echo"]).stdout
    return [int(n) for n in re.findall(r"counter packets (\d+)", told)]


COUNT = ("icmp type echo-request counter", "icmpv6 type echo-request counter", "udp dport 8620 counter")


@pytest.mark.skipif(not shutil.which("nft"), reason="nftables is not installed")
@pytest.mark.parametrize("model", ["constant", "poisson"])
@pytest.mark.parametrize("address", ["address", "address6"])
def test_echo_leaves_at_the_send_times_of_the_probes(pair, both, serve, address, model):
    a, b = pair
    serve(b, "--dscp-allow", "be,cs1,ef")
    rules(b, *COUNT)
    stamp, echo, objects, _ = both(a, getattr(b, address), "-c", 100, "-i", "5ms", "--model", model, *CLASSES)
    assert not wrong(objects)
    assert (stamp["sent"], stamp["received"]) == (300, 300) and (echo["sent"], echo["received"], echo["lost"]) == (100, 100, 0)
    assert not reasons(stamp) and not reasons(echo) and echo["protocol"] == "icmp" and echo["payload_bytes"] == 56
    four, six, udp = packets(b)
    assert max(four, six) == 100 and min(four, six) == 0 and udp == 300 + 3 * stamp["closing_probes"]
    probes, echoes = trips(objects), trips(objects, "ping")
    assert len(echoes) == 100 and len(probes) == 300
    assert all(echoes[number, None]["scheduled_ns"] == probes[number, 0]["scheduled_ns"] for number in range(100)), "one schedule for both"
    apart = [echoes[n, None]["sent_ns"] - min(probes[n, c]["sent_ns"] for c in range(3)) for n in range(100)]
    assert abs(statistics.median(apart)) < 1e6, apart
    assert sum(ns < 0 for ns in apart) >= 5, "the echo is the first of the four in turns"


@pytest.mark.skipif(not shutil.which("nft"), reason="nftables is not installed")
def test_each_of_both_has_its_own_verdict(pair, both, serve):
    a, b = pair
    serve(b)
    rules(b, "icmp type echo-request drop")
    stamp, echo, _, _ = both(a, b.address, "-c", 50, "-i", "5ms", "-W", "200ms", status=3)
    assert echo["verdict"] == "invalid" and any("answered nothing within" in one["text"] for one in echo["reasons"]) and echo["lost"] == 50
    assert stamp["received"] == 50 and not reasons(stamp)
    b.run(["nft", "delete", "table", "inet", "echo"])
    rules(b, "udp dport 8620 drop")
    stamp, echo, _, _ = both(a, b.address, "-c", 50, "-i", "5ms", "-W", "200ms", status=3)
    assert stamp["verdict"] == "invalid" and stamp["received"] == 0
    assert echo["received"] == 50 and not reasons(echo)


@pytest.mark.skipif(not shutil.which("nft"), reason="nftables is not installed")
@pytest.mark.parametrize("lost", ["icmp type echo-request", "udp dport 8620"])
def test_one_of_both_waits_for_its_last_answers(pair, ktrxer, serve, lost):
    """The other one has ended, and takes no processor time for packets that still arrive."""
    a, b = pair
    serve(b)
    rules(b, f"{lost} drop")
    child = a.popen([ktrxer, "stamp", b.address, "-c", "40", "-i", "5ms", "-W", "3s", "--echo", "--jsonl"])
    flood = a.popen([ktrxer, "ping", b.address, "-i", "1ms", "--for", "4s", "--json"]) if "udp" in lost else None
    spent = os.times()
    out, _ = child.communicate(timeout=30)
    after = os.wait4(flood.pid, 0)[2] if flood else None
    spent = os.times().children_user + os.times().children_system - spent.children_user - spent.children_system
    stamp, echo, _ = ends(out)
    assert {stamp["lost"], echo["lost"]} == {0, 40}
    assert spent - (after.ru_utime + after.ru_stime if after else 0) < 0.7, "of more than 3 s"


def test_ctrl_c_ends_both(pair, ktrxer, serve):
    a, b = pair
    serve(b)
    child = a.popen([ktrxer, "stamp", b.address, "-i", "10ms", "-c", "10000", "--echo", "--jsonl"])
    until(lambda: '"of":"ping"' in child.stdout.readline(), 10)
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    stamp, echo, _ = ends(child.communicate(timeout=20)[0])
    for end in (stamp, echo):
        assert end["verdict"] == "degraded" and any("stopped" in reason["text"] for reason in end["reasons"]), end
        assert end["requested"] == 10000 == end["sent"] + end["failed"] + end["skipped"] + end["cancelled"] and end["sent"] > 20


def test_a_device_that_goes_down_ends_both(pair, ktrxer, serve):
    a, b = pair
    serve(b)
    child = a.popen([ktrxer, "stamp", b.address, "-i", "10ms", "--for", "20s", "-W", "300ms", "--echo", "--jsonl"])
    until(lambda: '"of":"ping"' in child.stdout.readline(), 10)
    a.run(["ip", "link", "del", a.device])
    stamp, echo, _ = ends(child.communicate(timeout=40)[0])
    assert child.returncode == 3 and stamp["verdict"] != "valid" and echo["verdict"] != "valid", (stamp, echo)


def test_results_for_people_and_for_programs(shared_pair, ktrxer, serve):
    a, b = shared_pair
    serve(b)
    told = a.run([ktrxer, "stamp", b.address, "-c", "3", "-i", "200ms", "--echo"], check=False).stdout.splitlines()
    assert [line.split(" ")[0] for line in told[:2]] == ["ping:", "stamp"]
    assert sum("ping: 10.77.0.2: number" in line for line in told) == 3
    assert sum(line.startswith("ping: verdict: ") for line in told) == 1 and sum(line.startswith("verdict: ") for line in told) == 1
    decoder, text = json.JSONDecoder(), a.run([ktrxer, "stamp", b.address, "-c", "3", "-i", "5ms", "--echo", "--json"], check=False).stdout
    echo, at = decoder.raw_decode(text)
    stamp, _ = decoder.raw_decode(text[at:].lstrip())
    assert echo["of"] == "ping" and echo["received"] == 3 and stamp["received"] == 3 and "start" in stamp


def test_wrong_options(shared_pair, ktrxer):
    a, b = shared_pair
    done = a.run([ktrxer, "stamp", b.address, "--echo", "--precise"], check=False)
    assert done.returncode == 2 and "--echo goes without --precise" in done.stderr
    done = a.run([ktrxer, "stamp", "8.8.8.8", "--echo", "-i", "100us"], check=False)
    assert done.returncode == 1 and "--flood" in done.stderr, "the echo counts for the rate that needs --flood"


def test_a_slow_reader_makes_both_incomplete(shared_pair, ktrxer, serve):
    """Objects of both are lost, so that neither series may look complete."""
    a, b = shared_pair
    serve(b)
    with a.popen([str(ktrxer), "stamp", b.address, "--echo", "--jsonl", "--count", "4000", "-i", "1ms"]) as child:
        time.sleep(5)
        out, _ = child.communicate(timeout=30)
    stamp, echo, objects = ends(out)
    assert stamp["output"]["dropped"] > 0 and len(trips(objects, "ping")) + len(trips(objects)) < 8000
    for end in (stamp, echo):
        # On a busy machine late probes make the verdict worse still.
        assert end["verdict"] in ("degraded", "invalid") and any("reader of the output was too slow" in one["text"] for one in end["reasons"]), end
