# SPDX-License-Identifier: MIT OR Apache-2.0
"""Three hosts in a row. The offloads are off, so that a shaper sees the packets of the wire.

    a 10.77.0.1 ---- 10.77.0.2 r 10.78.0.1 ---- 10.78.0.2 b
"""

import contextlib
from collections.abc import Iterator

from ktrxer_lab import hosts


@contextlib.contextmanager
def routed() -> Iterator[tuple[hosts.Netns, hosts.Netns, hosts.Netns]]:
    with hosts.Netns("a") as a, hosts.Netns("r") as r, hosts.Netns("b") as b:
        hosts.join(a, r, net=77, devices=("a0", "ra"))
        hosts.join(r, b, net=78, devices=("rb", "b0"))
        r.sysctl("ipv4/ip_forward", 1)
        a.ip("route", "add", "10.78.0.0/24", "via", "10.77.0.2")
        b.ip("route", "add", "10.77.0.0/24", "via", "10.78.0.1")
        for host, device in ((a, "a0"), (r, "ra"), (r, "rb"), (b, "b0")):
            host.run(["ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off"])
        yield a, r, b
