# SPDX-License-Identifier: MIT OR Apache-2.0
"""Two hosts with two lines between them, and a far address that both lines lead to.

    a  10.77.0.1  w1 ------- v1  10.77.0.2  b
       10.78.0.1  w2 ------- v2  10.78.0.2     10.9.9.9, fd09::9 on lo

The route leads by w1. Packets from 10.78.0.1 (fd00:78::1), and packets with mark 7, leave by w2, because of rules.
"""

import contextlib
from collections.abc import Iterator

from ktrxer_lab import hosts

FAR = {4: "10.9.9.9", 6: "fd09::9"}
SECOND = {4: "10.78.0.1", 6: "fd00:78::1"}
FIRST = {4: "10.77.0.1", 6: "fd00:77::1"}


@contextlib.contextmanager
def two_lines() -> Iterator[tuple[hosts.Netns, hosts.Netns]]:
    with hosts.Netns("a") as a, hosts.Netns("b") as b:
        for host in (a, b):
            for device in ("all", "default"):
                host.sysctl(f"ipv4/conf/{device}/rp_filter", 0)
        hosts.join(a, b, net=77, devices=("w1", "v1"))
        hosts.join(a, b, net=78, devices=("w2", "v2"))
        b.ip("address", "add", FAR[4], "dev", "lo")
        b.ip("address", "add", FAR[6], "dev", "lo", "nodad")
        for family, via in (("-4", "10.{}.0.2"), ("-6", "fd00:{}::2")):
            far = FAR[int(family[1])]
            a.ip(family, "route", "add", far, "via", via.format(77))
            a.ip(family, "route", "add", "default", "via", via.format(78), "table", "78")
            a.ip(family, "rule", "add", "from", SECOND[int(family[1])], "lookup", "78")
            a.ip(family, "rule", "add", "fwmark", "7", "lookup", "78")
        yield a, b


def mark(a: hosts.Netns, condition: str = "") -> None:
    """What a firewall of this host marks leaves by the second line; the command cannot see that in the routes."""
    a.run(["nft", "add table inet marks"])
    a.run(["nft", "add chain inet marks out { type route hook output priority mangle; }"])
    a.run(["nft", f"add rule inet marks out {condition} meta l4proto {{ icmp, ipv6-icmp, udp, tcp }} ip daddr {FAR[4]} meta mark set 7"])
    a.run(["nft", f"add rule inet marks out {condition} meta l4proto {{ icmp, ipv6-icmp, udp, tcp }} ip6 daddr {FAR[6]} meta mark set 7"])


def sent(a: hosts.Netns) -> dict[str, int]:
    return {device: a.counters(device)["tx"]["packets"] for device in ("w1", "w2")}


def return_by_second(b: hosts.Netns) -> None:
    """Answers of the far host to the first line's addresses arrive by the second line."""
    for version in (4, 6):
        b.ip(f"-{version}", "route", "add", FIRST[version], "via", SECOND[version])
