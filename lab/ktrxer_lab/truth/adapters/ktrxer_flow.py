# SPDX-License-Identifier: MIT OR Apache-2.0
"""ktrxer flow --json: TCP and UDP flows, up and down."""

from __future__ import annotations

from ktrxer_lab.truth.adapters.iperf3 import OVERLOADED
from ktrxer_lab.truth.figure import Figure, Output, Unreadable, json_object, share
from ktrxer_lab.truth.path import UDP_HEADERS

PROGRAM, BESIDE = "ktrxer flow", "ktrxer serve"
COUNTS = ("sent_packets", "received_packets", "lost")


def read(output: Output) -> list[Figure]:
    result, found = json_object(output, "--json"), list[Figure]()
    if "flows" not in result:
        raise Unreadable("no flows in the output: the command failed before they began")
    for way in ("up", "down"):
        flows = [flow for flow in result["flows"] if flow["direction"] == way]
        if not flows:
            continue
        if result["protocol"] == "tcp":
            found.append(Figure(f"TCP {way}", result[f"{way}_bps"] / 1e6, loaded=True))
            found.append(Figure(f"TCP bytes {way}", sum(flow["received_bytes"] for flow in flows), loaded=True))
            continue
        if any(flow[key] is None for flow in flows for key in COUNTS):
            raise Unreadable("a flow has no counts of the server, because its control connection broke")
        sent, received, lost = (sum(flow[key] for flow in flows) for key in COUNTS)
        found += share(f"loss {way}", lost, sent, loaded=True)
        found += share(f"duplicates {way}", sum(flow["duplicates"] for flow in flows), sent - lost)
        if any(flow["ecn"] != "off" for flow in flows):
            found += share(f"CE {way}", sum(flow["ce"] for flow in flows), received)
        if lost > OVERLOADED * sent and received:
            frames = 1 + UDP_HEADERS * received / sum(flow["received_bytes"] for flow in flows)
            found.append(Figure(f"UDP {way}", result[f"{way}_bps"] * frames / 1e6, loaded=True))
    return found
