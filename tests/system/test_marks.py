# SPDX-License-Identifier: MIT OR Apache-2.0
"""
DSCP and ECN of flows and probes, sent against received, over a router that changes them. Reference: the counters of the router's rules.

    a 10.77.0.1 ---- 10.77.0.2 r 10.78.0.1 ---- 10.78.0.2 b        IPv6: fd00:77::/64, fd00:78::/64
"""

import json
import shutil

import pytest
from recorded import wrong
from routed import routed
from shims import shim

pytestmark = pytest.mark.skipif(not shutil.which("nft"), reason="nftables is not installed")

FAR = {4: "10.78.0.2", 6: "fd00:78::2"}
PAYLOAD = 1000
OF_MARKS = {"dscp_changed", "ecn_bleached", "ecn_changed", "flow_ecn_bleached", "flow_ce_not_returned", "marks_changed"}
UDP = ("--udp", "--bitrate", "2M", "--payload", PAYLOAD, "--for", "1s")


class Router:
    def __init__(self, host):
        self.host = host

    def rules(self, *lines):
        """Rules of the packets that the router forwards; each counts the packets that it matches."""
        text = "".join(f"add rule inet marks pass {line}\n" for line in lines)
        self.host.run(["nft", "-f", "-"], input=f"""
add table inet marks
delete table inet marks
add table inet marks
add chain inet marks pass {{ type filter hook forward priority 0; }}
{text}""")  # fmt: skip

    def counted(self):
        listed = json.loads(self.host.run(["nft", "-j", "list", "table", "inet", "marks"]).stdout)["nftables"]
        return [part["counter"]["packets"] for rule in listed if "rule" in rule for part in rule["rule"]["expr"] if "counter" in part]


@pytest.fixture(scope="module")
def path():
    with routed() as (a, r, b):
        r.sysctl("ipv6/conf/all/forwarding", 1)
        a.run(["ip", "-6", "route", "add", "fd00:78::/64", "via", "fd00:77::2"])
        b.run(["ip", "-6", "route", "add", "fd00:77::/64", "via", "fd00:78::1"])
        yield a, Router(r), b


def found(end):
    return {one["id"]: one["text"] for one in end["reasons"] if one["id"] in OF_MARKS}


def out(way):
    return f"oifname {'rb' if way == 'up' else 'ra'}"


def datagrams(way):
    return f"{out(way)} udp length {PAYLOAD + 8}"


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("way", ["up", "down"])
def test_cleared_ecn_of_udp(path, flow, serve, token, way, family):
    a, router, b = path
    serve(b, "--token-file", token)
    ip = "ip" if family == 4 else "ip6"
    router.rules(f"{datagrams(way)} {ip} ecn ect0 counter {ip} ecn set not-ect")
    run = flow(a, way, FAR[family], *UDP, "--ecn", "ect0")
    (one,), (changed,) = run.flows, router.counted()
    assert changed == one["received_packets"] > 200 and one["ect0"] == 0
    assert one["marks"] == [{"dscp": 0, "ecn": "off", "packets": changed}]
    assert run.status == 3 and run.end["verdict"] == "degraded" and not wrong(run.objects)
    assert found(run.end) == {
        "ecn_bleached": f"the path {way} cleared the ECN mark of {changed} of {changed} datagrams, from ect0 to off: "
        "queues behind that place drop them instead of marking them"
    }


@pytest.mark.parametrize("family", [4, 6])
def test_two_faults_at_once(path, flow, serve, token, family):
    """Up the ECN is cleared, down the DSCP of half of the packets is another one."""
    a, router, b = path
    serve(b, "--token-file", token)
    ip = "ip" if family == 4 else "ip6"
    router.rules(
        f"{datagrams('up')} {ip} ecn ect1 counter {ip} ecn set not-ect",
        f"{datagrams('down')} {ip} dscp ef numgen inc mod 2 == 0 counter {ip} dscp set cs1",
    )
    run = flow(a, "both", FAR[family], *UDP, "--ecn", "ect1", "--dscp", "EF")
    (up, down), (bleached, remarked) = run.flows, router.counted()
    assert up["marks"] == [{"dscp": 46, "ecn": "off", "packets": bleached}] and bleached > 200
    assert sorted((one["dscp"], one["ecn"], one["packets"]) for one in down["marks"]) == [
        (8, "ect1", remarked), (46, "ect1", down["received_packets"] - remarked)
    ]  # fmt: skip
    texts = found(run.end)
    assert set(texts) == {"ecn_bleached", "dscp_changed"}
    assert f"the path up cleared the ECN mark of {bleached} of {bleached} datagrams" in texts["ecn_bleached"]
    assert f"the path down changed the DSCP of {remarked} of {down['received_packets']} datagrams from EF to CS1" in texts["dscp_changed"]


def test_another_ecn_mark(path, flow, serve, token):
    a, router, b = path
    serve(b, "--token-file", token)
    router.rules(f"{datagrams('up')} ip ecn ect1 counter ip ecn set ect0")
    run = flow(a, "up", FAR[4], *UDP, "--ecn", "ect1")
    assert set(found(run.end)) == {"ecn_changed"} and "from ect1 to ect0" in found(run.end)["ecn_changed"]


@pytest.mark.parametrize("family", [4, 6])
def test_marks_that_are_no_fault(path, flow, serve, token, family):
    """A path that sets CE on capable packets; packets without marks; best effort that is remarked, which is a line of text only."""
    a, router, b = path
    serve(b, "--token-file", token)
    ip = "ip" if family == 4 else "ip6"
    router.rules(f"udp length {PAYLOAD + 8} {ip} ecn ect0 numgen inc mod 9 == 4 counter {ip} ecn set ce")
    run = flow(a, "both", FAR[family], *UDP, "--ecn", "ect0", "--dscp", "AF41")
    assert sum(one["ce"] for one in run.flows) == router.counted()[0] > 20 and not found(run.end) and not run.reasons, run.reasons
    assert all({one["ecn"] for one in flow["marks"]} == {"ect0", "ce"} for flow in run.flows)
    router.rules()
    run = flow(a, "both", FAR[family], *UDP)
    assert not run.reasons and all(one["marks"] == [{"dscp": 0, "ecn": "off", "packets": one["received_packets"]}] for one in run.flows)
    router.rules(f"{datagrams('down')} counter {ip} dscp set cs1")
    run = flow(a, "down", FAR[family], *UDP)
    assert not run.reasons and run.end["verdict"] == "valid"
    assert run.flows[0]["marks"] == [{"dscp": 8, "ecn": "off", "packets": router.counted()[0]}]
    # Beside another class best effort is a class, too.
    run = flow(a, "down", FAR[family], *UDP, "--flows", 2, "--dscp", "BE,EF")
    assert "datagrams of class " in found(run.end)["dscp_changed"]


def test_best_effort_with_another_dscp_is_named(path, ktrxer, serve, token):
    a, router, b = path
    serve(b, "--token-file", token)
    router.rules(f"{datagrams('up')} counter ip dscp set cs1")
    done = a.run([ktrxer, "flow", "up", FAR[4], *map(str, UDP), "--token-file", token])
    changed = router.counted()[0]
    assert f"marks: {changed} of {changed} datagrams up were sent with DSCP BE and arrived with CS1" in done.stdout


# ------------------------------------------------------------------------------------------------------------------- TCP


@pytest.fixture
def ecn(path):
    a, router, b = path
    for host in (a, b):
        host.sysctl("ipv4/tcp_ecn", 1)
    yield path
    for host in (a, b):
        host.sysctl("ipv4/tcp_ecn", 2)


TCP = ("--bitrate", "20M", "--for", "2s", "--cc", "reno")


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("way", ["up", "down"])
def test_cleared_ecn_of_tcp(ecn, flow, serve, token, way, family):
    a, router, b = ecn
    serve(b, "--token-file", token)
    ip = "ip" if family == 4 else "ip6"
    router.rules(f"{out(way)} meta l4proto tcp {ip} ecn != not-ect counter {ip} ecn set not-ect")
    run = flow(a, way, FAR[family], *TCP, "--flows", 2, "--ecn", "on")
    assert all(one["ecn"] == "on" and one["ecn_arrived"] is False for one in run.flows) and router.counted()[0] > 100
    assert run.status == 3 and found(run.end) == {
        "flow_ecn_bleached": f"2 of 2 TCP flows {way} agreed on ECN, but no segment arrived with an ECN mark: "
        "the path clears it, so its queues drop these segments instead of marking them"
    }
    run = flow(a, way, FAR[family], *TCP)  # ECN was not demanded
    assert run.flows[0]["ecn_arrived"] is False and not run.reasons, run.reasons
    router.rules()
    run = flow(a, "both", FAR[family], *TCP, "--ecn", "on")
    assert not run.reasons and all(one["ecn_arrived"] is True for one in run.flows), run.reasons


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("way", ["up", "down"])
def test_ce_that_never_comes_back(ecn, flow, serve, token, way, family):
    a, router, b = ecn
    serve(b, "--token-file", token)
    ip, back = "ip" if family == 4 else "ip6", "down" if way == "up" else "up"
    mark = f"{out(way)} meta l4proto tcp {ip} ecn != not-ect numgen inc mod 50 == 7 counter {ip} ecn set ce"
    router.rules(mark)
    run = flow(a, way, FAR[family], *TCP, "--ecn", "on")
    (one,) = run.flows
    assert not run.reasons and one["delivered_ce"] > 0, run.reasons
    router.rules(mark, f"{out(back)} tcp flags == (ack | ecn) counter tcp flags set ack")
    run = flow(a, way, FAR[family], *TCP, "--ecn", "on")
    (one,), counted = run.flows, router.counted()
    assert one["delivered_ce"] == 0 and counted[0] > 10 and counted[1] > 10, (one, counted)
    print(f"figure: {counted[0]} segments were marked, the receiver counted {one['received_ce']}")
    if one["received_ce"] is None:  # Linux before 6.18 does not count them
        assert not found(run.end)
        return
    assert 0 < one["received_ce"] <= counted[0]
    assert set(found(run.end)) == {"flow_ce_not_returned"} and run.status == 3
    assert f"1 of 1 TCP flows {way}: {one['received_ce']} segments arrived with the mark CE" in found(run.end)["flow_ce_not_returned"]


@pytest.mark.parametrize("family", [4, 6])
def test_a_kernel_without_a_count_of_ce(ecn, ktrxer, serve, token, family):
    """A receiver before Linux 6.18: no count is no count of 0."""
    a, router, b = ecn
    serve(b, "--token-file", token)
    router.rules(f"{out('down')} meta l4proto tcp {'ip' if family == 4 else 'ip6'} ecn != not-ect numgen inc mod 50 == 7 counter {'ip' if family == 4 else 'ip6'} ecn set ce")
    words = [ktrxer, "flow", "down", FAR[family], *TCP, "--ecn", "on", "--token-file", token]
    old = ["env", f"LD_PRELOAD={shim(ktrxer, 'info_shim')}"]
    (one,) = json.loads(a.run([*old, *map(str, words), "--json"]).stdout)["flows"]
    assert router.counted()[0] > 10, "the reference"
    assert one["ecn_arrived"] is True and one["received_ce"] is None and one["delivered_ce"] > 0
    text = "CE of 1 of 1 TCP flows down is not observed: Linux before 6.18 does not count it"
    assert text in a.run([*old, *map(str, words)]).stdout
    native = a.run(list(map(str, [*words, "--json"]))).stdout
    (one,) = json.loads(native)["flows"]
    assert (one["received_ce"] is None) or one["received_ce"] > 0
