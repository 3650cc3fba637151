# SPDX-License-Identifier: MIT OR Apache-2.0
"""ktrxer run --json: the figures of its summary."""

from __future__ import annotations

from ktrxer_lab.truth.figure import Figure, Output, Unreadable, json_object

PROGRAM, BESIDE = "ktrxer run", "ktrxer serve"


def read(output: Output) -> list[Figure]:
    result = json_object(output, "--json").get("summary")
    if result is None:
        raise Unreadable("no summary in the output: give `ktrxer run` --json")
    found: list[Figure] = []
    others = {one["direction"]: (one["probes_bps"] + one["control_bps"]) / 1e6 for one in result["own_load"]}
    for one in result["throughput"]:
        if one["direction"] in ("up", "down") and one["mean_mbps"] is not None:
            found.append(Figure(f"TCP {one['direction']}", one["mean_mbps"], loaded=True, others_mbps=others.get(one["direction"], 0.0)))
    kinds = {one["probes"] for one in result["latency"]}
    kind = "UDP" if "UDP" in kinds else "ICMP"  # UDP probes have delays by direction
    for one in result["latency"]:
        if one["probes"] != kind:
            continue
        idle, loaded = one["idle"], one["loaded"]
        if one["name"] == "round trip":
            found += [Figure("idle round trip p50", idle["p50"], idle["p50_low"], idle["p50_high"])] if idle else []
            found += [Figure("loaded round trip mean", loaded["mean"], loaded=True)] if loaded else []
        elif one["name"] in ("up", "down"):
            for phase, delays, bound in (("idle", idle, one["idle_bound_ms"]), ("loaded", loaded, one["bound_ms"])):
                if delays and bound is not None:
                    p50 = delays["p50"]
                    found.append(Figure(f"{phase} delay {one['name']} p50", p50, p50 - bound, p50 + bound, loaded=phase == "loaded"))
    if result["where"]:
        found.append(Figure("where", result["where"][0]["added_ms"], text=result["where"][0]["place"], loaded=True))
    return found
