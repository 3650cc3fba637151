# SPDX-License-Identifier: MIT OR Apache-2.0
"""ktrxer trace --json: the addresses of the hops, the number of routes, and the round trip to the destination."""

from __future__ import annotations

from ktrxer_lab.truth.figure import Figure, Output, json_object

PROGRAM, BESIDE = "ktrxer trace", ""


def read(output: Output) -> list[Figure]:
    result = json_object(output, "--json")
    route, found = list[str](), list[Figure]()
    if not result["one_route"]:
        found.append(Figure("routes", result["routes"]))
    for hop in result["hops"]:
        nodes = [node for node in hop["nodes"] if node["address"]]
        route += [nodes[0]["address"] if nodes else "*"]
        last = next((node for node in nodes if node["end"] == "destination"), None)
        if last is not None:
            found.append(Figure("round trip p50", last["rtt_us"]["p50"] / 1e3))
            break
    return [Figure("route", len(route), text=" ".join(route)), *found]
