# SPDX-License-Identifier: MIT OR Apache-2.0
"""iperf3 -J: TCP up, and down with -R; UDP with its loss."""

from __future__ import annotations

from ktrxer_lab.truth.figure import Figure, Output, Unreadable, json_object, share
from ktrxer_lab.truth.path import UDP_HEADERS

PROGRAM, BESIDE = "iperf3", "iperf3 -s"
OVERLOADED = 0.01  # share of lost packets above which the received rate is the rate of the path


def read(output: Output) -> list[Figure]:
    result = json_object(output, "-J")
    if "error" in result:
        raise Unreadable(f"iperf3: {result['error']}")
    start, end = result["start"]["test_start"], result["end"]
    way = "down" if start["reverse"] else "up"
    if start["protocol"] == "TCP":
        rate = float(end["sum_received"]["bits_per_second"]) / 1e6
        return [Figure(f"TCP {way}", rate, loaded=True)]
    whole = end["sum"]
    packets, lost = int(whole["packets"]), int(whole["lost_packets"])
    found = share(f"loss {way}", lost, packets, loaded=True)
    if packets and lost > OVERLOADED * packets:
        length = int(start["blksize"]) + UDP_HEADERS
        found.append(Figure(f"UDP {way}", (packets - lost) * length * 8e-6 / float(whole["seconds"]), loaded=True))
    return found
