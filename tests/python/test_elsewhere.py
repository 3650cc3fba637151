# SPDX-License-Identifier: MIT OR Apache-2.0
"""The state of hosts on which only commands can be run: recorded output, output of a hostile host, missing commands, and tiers of privacy."""

import json
import shutil
import time

import pytest
from ktrxer.collect import answers, elsewhere
from ktrxer.places import PlaceError, open_place
from ktrxer.run import hosts
from ktrxer.run.egress import changed_elsewhere
from ktrxer.store.checked import free
from test_egress import made, qdisc

TARGET = "198.51.100.7"

# Of a router with OpenWrt: iproute2-6.3.0, ethtool 6.6, iw 5.19.
SAID = {
    "uname -srm": "Linux 5.15.150 mips\n",
    "uname -v": "#0 Fri Mar 22 22:09:42 2024\n",
    "uname -n": "kitchen\n",
    "nproc": "2\n",
    "cat /proc/cpuinfo": "system type\t\t: MediaTek MT7621\ncpu model\t\t: MIPS 1004Kc V2.15\n",
    "cat /proc/loadavg": "0.10 0.05 0.01 1/91 2811\n",
    "cat /sys/devices/system/clocksource/clocksource0/current_clocksource": "GIC\n",
    "ip -V": "ip utility, iproute2-6.3.0, libbpf 1.2.2\n",
    "ethtool --version": "ethtool version 6.6\n",
    "iw --version": "iw version 5.19\n",
    f"ip -j route get {TARGET}": json.dumps([{"dst": TARGET, "gateway": "203.0.113.1", "dev": "wan", "prefsrc": "203.0.113.20", "flags": [], "uid": 0}]),
    "ip -j -d link show dev wan": json.dumps([{"ifname": "wan", "mtu": 1500, "operstate": "UP", "txqlen": 1000, "num_tx_queues": 4,
                                              "address": "c4:04:15:00:00:01", "linkinfo": {"info_kind": "dsa"}}]),
    "tc -j -s -d qdisc show dev wan": json.dumps([{
        "kind": "cake", "handle": "8005:", "root": True, "refcnt": 5,
        "options": {"bandwidth": 2500000, "diffserv": "diffserv3", "flowmode": "triple-isolate", "nat": True, "rtt": 100000},
        "bytes": 120000, "packets": 300, "drops": 7, "overlimits": 50, "requeues": 0, "backlog": 1514, "qlen": 1,
        "memory_used": 4096, "tins": [{"threshold_rate": 156250, "sent_bytes": 9, "drops": 7}]}]),
    "ethtool -i wan": "driver: mt7530\nversion: \nfirmware-version: N/A\nbus-info: dsa\n",
    "ethtool -k wan": "Features for wan:\nrx-checksumming: off [fixed]\ntcp-segmentation-offload: on\ngeneric-receive-offload: on\n\ttx-checksum-ipv4: off\n",
    "ethtool -c wan": "Coalesce parameters for wan:\nAdaptive RX: off  TX: off\nrx-usecs:\t20\nrx-frames:\tn/a\n",
    "cat /sys/class/net/wan/speed": "1000\n",
    "cat /sys/class/net/wan/duplex": "full\n",
    "iw dev wan link": "Connected to 02:11:22:33:44:55 (on wan)\n\tSSID: home of the Smiths\n\tfreq: 5180\n\tsignal: -52 dBm\n"
                       "\trx bitrate: 866.7 MBit/s VHT-MCS 9 80MHz short GI VHT-NSS 2\n\ttx bitrate: 780.0 MBit/s\n",
    "iw dev wan info": "Interface wan\n\tchannel 36 (5180 MHz), width: 80 MHz, center1: 5210 MHz\n\ttxpower 20.00 dBm\n",
    "ip -j address show": json.dumps([{"ifname": "lo", "addr_info": [{"local": "127.0.0.1"}]}, {"ifname": "wan", "addr_info": [{"local": "203.0.113.20"}]}]),
    "ip -j route show": json.dumps([{"dst": "default", "gateway": "203.0.113.1", "dev": "wan"}, {"dst": "192.168.1.0/24", "dev": "br-lan"}]),
}
SYSCTL = "net/core/default_qdisc:fq_codel\nnet/ipv4/tcp_rmem:4096\t131072\t6291456\nnet/ipv4/tcp_fastopen_key:secret\n/etc/passwd:root\n"


def ask(argv):
    return SYSCTL if argv[0] == "sh" else SAID.get(" ".join(argv))


def test_what_a_router_said():
    found = elsewhere.gather(ask, TARGET)
    assert found["kernel"] == {"name": "Linux", "release": "5.15.150", "machine": "mips", "version": "#0 Fri Mar 22 22:09:42 2024"}
    assert found["cpu"] == {"model": "MIPS 1004Kc V2.15", "usable": 2, "load": [0.1, 0.05, 0.01]} and found["clock"] == {"source": "GIC"}
    assert found["tools"] == {"iproute2": "6.3.0", "ethtool": "6.6", "iw": "5.19"}
    assert found["sysctls"] == {"net.core.default_qdisc": "fq_codel", "net.ipv4.tcp_rmem": "4096 131072 6291456"}
    egress = found["egress"]
    assert (egress["device"], egress["driver"], egress["firmware"]) == ("wan", "mt7530", "N/A")
    assert egress["link"] == {"mtu": 1500, "qlen": 1000, "state": "UP", "queues": 4, "speed_mbps": 1000, "duplex": "full"}
    assert egress["offloads"] == {"rx-checksum": False, "tso": True, "gro": True} and egress["coalescing"] == {"rx-usecs": 20}
    (cake,) = egress["qdiscs"]
    assert (cake["kind"], cake["parent"], cake["parameters"]["bandwidth"]) == ("cake", "root", 2500000)
    assert cake["stats"] == {"bytes": 120000, "packets": 300, "drops": 7, "overlimits": 50, "requeues": 0, "backlog": 1514, "qlen": 1}
    assert cake["more"]["tins"][0]["drops"] == 7 and cake["more"]["memory_used"] == 4096
    assert egress["wifi"] == {"frequency_mhz": 5180.0, "signal_dbm": -52.0, "txpower_dbm": 20.0, "channel": 36, "width_mhz": 80,
                              "rx_bitrate": "866.7 MBit/s VHT-MCS 9 80MHz short GI VHT-NSS 2", "tx_bitrate": "780.0 MBit/s"}  # fmt: skip


PRIVATE = ("kitchen", "203.0.113.20", "203.0.113.1", TARGET, "c4:04:15:00:00:01", "02:11:22:33:44:55", "Smiths")


def test_the_small_set_identifies_nothing_and_the_full_one_is_complete():
    small, full = (json.dumps(elsewhere.gather(ask, TARGET, full=full)) for full in (False, True))
    assert [word for word in PRIVATE if word in small] == [] and [word for word in PRIVATE if word not in full] == []
    assert "secret" not in full and "root" not in json.loads(full)["sysctls"]
    found = elsewhere.gather(ask, TARGET, full=True)
    assert found["routes"] == [{"to": "default", "gateway": "203.0.113.1", "device": "wan"}]
    assert found["addresses"] == {"lo": ["127.0.0.1"], "wan": ["203.0.113.20"]} and found["host"] == "kitchen"


@pytest.mark.parametrize("missing", [*sorted(SAID), "everything"])
def test_each_command_may_be_missing(missing):
    found = elsewhere.gather(lambda argv: None if missing in (" ".join(argv), "everything") else ask(argv), TARGET, full=True)
    assert (found == {}) == (missing == "everything")


HOSTILE = ["", "\0", "[" * 100_000, "{}", "[]", "[1, null, {}]", '[{"dev": 5}]', '[{"dev": "../../x"}]', '[{"dev": "-x"}]', "null", "x" * 1_000_000,
           '[{"dev": "wan", "kind": 1e999, "options": NaN, "mtu": 99999999999999999999999, "addr_info": [[]], "gateway": {"a": {"b": {"c": {"d": {"e": {}}}}}}}]',
           json.dumps([{"dev": "wan", "options": {str(n): "y" * 400 for n in range(400)}}] * 6), "a:" * 100_000, "a: b\n" * 100_000,
           "\n" * 1_000_000, "Connected to \n" * 70_000, "Connected to \nsignal: -999999999999 dBm\nfreq: 1.2.3.4", "1.1.1 ... ..\n"]  # fmt: skip


@pytest.mark.parametrize("said", HOSTILE, ids=range(len(HOSTILE)))
def test_output_of_a_hostile_host_is_bounded(said):
    """In one command at a time, and in all of them. What is made of it can be stored."""
    for wrong in (*SAID, "sh", None):
        found = elsewhere.gather(lambda argv, wrong=wrong: said if wrong in (None, " ".join(argv), argv[0]) else ask(argv), TARGET, full=True)
        text = json.dumps(found, allow_nan=False, ensure_ascii=False)
        assert len(text) < 1_500_000
        free(found, "metadata")


@pytest.mark.parametrize("target", ["-x", "$(id)", "a b", "", None, "x" * 100])
def test_what_is_no_address_reaches_no_command(target):
    seen = []
    elsewhere.gather(lambda argv: seen.append(list(argv)), target)
    assert ["ip", "-j", "route", "show", "default"] in seen and not any("get" in argv for argv in seen)


def test_a_device_that_is_no_wifi():
    assert answers.wifi(lambda _: "Not connected.\n", "eth0", True) == {} and answers.wifi(lambda _: None, "eth0", True) == {}
    assert answers.here(["sh", "-c", "echo 5"]) == "5\n" and answers.here(["false"]) is None and answers.here(["ktrxer-no-such-tool"]) is None


@pytest.mark.skipif(shutil.which("ip") is None or shutil.which("tc") is None, reason="ip and tc (Debian: iproute2) are missing")
def test_this_host_by_the_real_commands():
    place = open_place("local")
    found = elsewhere.gather(hosts.asking(place), "127.0.0.1", full=True)
    place.close()
    assert found["egress"]["device"] == "lo" and found["egress"]["link"]["mtu"] >= 1500 and found["egress"]["qdiscs"][0]["kind"] == "noqueue"
    assert found["kernel"]["name"] == "Linux" and "net.ipv4.tcp_rmem" in found["sysctls"] and "net.ipv4.tcp_fastopen_key" not in found["sysctls"]
    assert "127.0.0.1" in found["addresses"]["lo"] and found["tools"]["iproute2"]


# ------------------------------------------------------------------------------------------------------------------ places


class Elsewhere:
    """A place in which each command does as `how` says."""

    def __init__(self, how):
        self.name, self.how, self.commands = "ssh:router", how, 0

    def loss(self):
        return "the ssh connection was lost: Connection reset" if self.how == "lost" else None

    def start(self, argv, **_):
        self.commands += 1
        if self.how == "fails":
            raise PlaceError("ssh:router: gone")
        return open_place("local").start({"hangs": ["sleep", "99"], "endless": ["yes"]}[self.how])


@pytest.mark.parametrize("how, text", [("lost", "the ssh connection was lost"), ("fails", "no command of the system worked there")])
def test_a_place_without_an_answer(how, text):
    assert text in hosts.states({"ssh:router": Elsewhere(how)}, ["ssh:router"], TARGET, full=False)["ssh:router"]["missing"]


@pytest.mark.parametrize("how", ["hangs", "endless"])
def test_commands_that_do_not_end(how, monkeypatch):
    monkeypatch.setattr(hosts, "EACH_S", 0.1)
    begin = time.monotonic()
    assert elsewhere.gather(hosts.asking(Elsewhere(how), 0.3), TARGET) == {} and time.monotonic() - begin < 30


def test_this_host_is_not_gathered_twice():
    assert hosts.states({"local": open_place("local")}, ["local"], TARGET, full=False) == {}


def test_a_qdisc_that_was_changed_in_another_place_is_a_reason():
    def state(*qdiscs, device="wan"):
        return {"places": {"ssh:router": {"egress": {"device": device, "qdiscs": list(qdiscs)}}}}

    assert list(changed_elsewhere(made(state(qdisc(drops=1)), state(qdisc(drops=9))))) == []
    (reason,) = changed_elsewhere(made(state(qdisc("cake")), state(qdisc("fq_codel"))))
    assert "the qdisc of ssh:router's device wan was changed during the run (from cake to fq_codel)" in reason.text
    (reason,) = changed_elsewhere(made(state(qdisc()), state(qdisc(), device="lte")))
    assert reason.text == "the route of ssh:router to the target changed during the run: from device wan to lte"
    for hostile in (None, 5, {"places": 5}, {"places": {"ssh:router": 5}}, {"places": {"ssh:router": {"egress": [1]}}}, state()):
        assert list(changed_elsewhere(made(hostile, state(qdisc())))) == []
