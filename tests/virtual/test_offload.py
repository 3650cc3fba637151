# SPDX-License-Identifier: MIT OR Apache-2.0
"""Devices that merge packets (GRO) or hold them (coalesced interrupts), in the hosts and in a router. A false capacity is never stated; where
packets arrive together, the reason names it. References: the rate and the drops of netem, the router's counter.

    near ---- mid ---- far        netem in mid, 20 Mbit/s in each direction
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from guests import FOR_RUNS, KTRXER, Lab
from shaped import FILE, truth

pytestmark = pytest.mark.slow

DEVICES = {"near": ("to-mid",), "mid": ("to-near", "to-far"), "far": ("to-mid",)}
MERGE = "gro on rx-udp-gro-forwarding on tso on gso on"


def devices(hosts: tuple[str, ...], features: str, hold_us: int = 0) -> list[str]:
    """`hold_us`: the kernel polls so long after a packet instead of at the next one, which is what coalesced interrupts do."""
    found = [(host, device) for host in hosts for device in DEVICES[host]]
    hold = f"echo {1000 * hold_us} >gro_flush_timeout; echo {int(hold_us > 0)} >napi_defer_hard_irqs"
    return [f"ip netns exec {host} sh -c 'ethtool -K {device} {features}; cd /sys/class/net/{device}; {hold}'" for host, device in found]


BARE = devices(("near", "mid", "far"), "gro off rx-udp-gro-forwarding off tso off gso off")
HOSTS = ("near", "far")
PLACES = {
    "none": [],
    "hosts merge": devices(HOSTS, MERGE, 400),
    "router merges": devices(("mid",), MERGE, 100),
    "held for 50 us": devices(HOSTS, "gro on", 50),
    "held for 400 us": devices(HOSTS, "gro on", 400),
}
COMMANDS = {
    "pair": "pair far --count 60",
    "ppt": "ppt measure far --direction both --interval 20ms",
    "ppt of large packets": "ppt measure far --direction both --interval 20ms --size1 232 --size2 900",
    "abw": "abw far",
    "udp": "flow up far --udp --bitrate 30M --payload 1400 --for 2s",
}
Ends = dict[tuple[str, str], Any]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Ends:
    """The end object of each command at each place; of "udp" with the drops of netem."""
    lab = Lab(tmp_path_factory.mktemp("offload"))
    (lab.folder / "net.toml").write_text(FILE)
    lab.write_token()
    job, cases = list[str](), [(place, name) for place in PLACES for name in COMMANDS]
    for n, (place, name) in enumerate(cases):
        job += [*BARE, *PLACES[place]] if name == next(iter(COMMANDS)) else []
        job += [f"ip netns exec mid tc qdisc replace dev {d} root netem rate 20mbit limit 200" for d in DEVICES["mid"]]
        job.append(f"{KTRXER} {COMMANDS[name]} --token-file token --json >{n}.json")
        job.append(f"ip netns exec mid tc -j -s qdisc show dev to-far >{n}.tc")
        job.append("ip netns exec mid tc qdisc del dev to-far root; ip netns exec mid tc qdisc del dev to-near root")
    done = lab("run", "./net.toml", "--time", "virtual", "--beside", f"far={KTRXER} serve --quiet --token-file token", "--",
               "sh", "-c", "\n".join([*job, "true"]), timeout=230)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    made: Ends = {}
    for n, case in enumerate(cases):
        made[case] = json.loads((lab.folder / f"{n}.json").read_text())
        made[case]["drops"] = json.loads((lab.folder / f"{n}.tc").read_text())[0]["drops"]
    return made


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["pair", "ppt of large packets", "abw"])
def test_no_false_figure_is_stated(found: Ends, place: str, name: str) -> None:
    end = found[place, name]
    right = truth(20) if name != "ppt of large packets" else 20e6
    for way in ("up", "down"):
        bounds = end[way]["available_bit_s" if name == "abw" else "capacity_bit_s"]
        print("figure:", place, name, way, bounds, end["verdict"], end["reasons"])
        assert bounds is None or 0.98 * bounds["low"] <= right <= 1.02 * bounds["high"]
        assert bounds is not None or end["verdict"] == "invalid"
    assert place != "none" or end["verdict"] == "valid"


@pytest.mark.parametrize(
    ("place", "name", "reading", "cause"),
    [
        ("hosts merge", "pair", "coalesced", "or packets merged (`ethtool -K DEV gro off`)"),
        ("hosts merge", "ppt", "coalesced", "or packets merged (`ethtool -K DEV gro off`)"),
        ("router merges", "pair", "coalesced", "a device on the path sends in bursts"),
        ("router merges", "ppt", "coalesced", "a device on the path sends in bursts"),
        ("held for 400 us", "abw", "coalesced", "or packets merged (`ethtool -K DEV gro off`), or a device on the path sends in bursts"),
        ("held for 400 us", "ppt", "service_time", "needs more time for a packet than its link, or coalesces interrupts"),
    ],
)
def test_the_cause_is_named(found: Ends, place: str, name: str, reading: str, cause: str) -> None:
    end = found[place, name]
    assert end["up"]["reading"] == reading and end["verdict"] == "invalid" and cause in end["reasons"][0]["text"]


@pytest.mark.parametrize("place", ["none", "hosts merge", "held for 400 us"])
def test_merged_datagrams_are_counted_one_by_one(found: Ends, place: str) -> None:
    """A router that merges them drops several as one."""
    end = found[place, "udp"]
    [flow] = end["flows"]
    assert end["drops"] > 100, "the reference"
    assert 0 <= end["drops"] - flow["lost"] < 20, "segments of the control connection are dropped, too"
    assert flow["reordered"] == flow["duplicates"] == 0


def test_drops_of_this_hosts_qdisc_are_not_segments(tmp_path: Path) -> None:
    """TCP hands over several segments as one packet, also where the offloads are off. The kernel counts a dropped packet as one."""
    lab = Lab(tmp_path, FOR_RUNS)
    (lab.folder / "net.toml").write_text(FILE)
    lab.write_token()
    job = [
        *BARE,
        "tc qdisc add dev to-mid root handle 1: htb default 1; tc class add dev to-mid parent 1: classid 1:1 htb rate 20mbit burst 3200 cburst 3200",
        "tc qdisc add dev to-mid parent 1:1 fq_codel",
        "ip netns exec mid nft 'table ip t { chain c { type filter hook prerouting priority 0; iifname to-near meta l4proto tcp counter; }; }'",
        "awk '/^Tcp: [0-9]/ { print $12 + $13 }' /proc/net/snmp >before",
        f"{sys.executable} -m ktrxer run tcp_nup --set upload_streams=4 -H far --for 5 --delay 1 -i 50ms --token-file token -D . >text",
        "awk '/^Tcp: [0-9]/ { print $12 + $13 }' /proc/net/snmp >after; ip netns exec mid nft -j list table ip t >counter",
    ]
    done = lab("run", "./net.toml", "--time", "virtual", "--beside", "far=ktrxer serve --quiet --token-file token", "--",
               "sh", "-c", "\n".join([*job, "true"]), timeout=200)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    sent = int((lab.folder / "after").read_text()) - int((lab.folder / "before").read_text())
    rules = [one["rule"] for one in json.loads((lab.folder / "counter").read_text())["nftables"] if "rule" in one]
    arrived = next(part["counter"]["packets"] for part in rules[0]["expr"] if "counter" in part)
    [line] = [line for line in (lab.folder / "text").read_text().splitlines() if "this host's own qdisc" in line]
    dropped = int(line.partition(" dropped ")[2].split()[0])
    print(f"figure: {sent} segments sent, {arrived} at the router; {line}")
    assert sent - arrived > 1.5 * dropped > 0, "the reference"
    assert f"dropped {dropped} packets of all traffic, of TCP each of one or more segments (GSO); " in line
    assert "left, counted in segments" in line
