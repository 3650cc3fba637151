# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which figures of a degraded run do not hold. A comparison takes the others."""

from __future__ import annotations

from collections.abc import Iterator

from ktrxer.analyse.figure import word
from ktrxer.figures.bound import Bound, read
from ktrxer.store.meta import Meta
from ktrxer.store.reason_table import FORMS

EVERY = "*"
# The keys (analyse/figures.py) of the figures that a reason names (contract/reasons.toml). Flows that failed were no full load, so the
# delays under load are in doubt, too.
LOADED = ("*.load.*", "added", "rpm", "loss.load")
KEYS = {
    "delay": ("*.rtt.*", "*.up.*", "*.down.*", "*.own_queue.*", "*.far_queue.*", "added", "rpm"), "loss": ("loss.*",),
    "rate": ("rate.*", *LOADED), "responsiveness": ("rpm",), "capacity": ("estimate.*",), "available_bandwidth": ("estimate.*",),
    "ppt": ("estimate.*",), "marks": (), "route": (),
}  # fmt: skip
OF_BOUNDS = ("bound_wide", "bound_unknown")


def doubts(meta: Meta) -> list[tuple[str, str]]:
    """Patterns of keys, each with its reason. Empty: all figures hold."""
    return list(_doubts(meta)) if meta.verdict == "degraded" else []


def _doubts(meta: Meta) -> Iterator[tuple[str, str]]:
    if not meta.reasons:
        yield EVERY, "no reason is given"
    bounds = [one for one in read(meta.accounts.get("bounds")) if not one.holds]
    for one in meta.reasons:
        if one.id in OF_BOUNDS and bounds:
            continue
        form = FORMS.get(one.id)
        for kind in form.figures if form is not None else ("all",):
            for key in KEYS.get(kind, (EVERY,)):
                yield key, one.text
    for bound in bounds:
        for key in _keys(bound):
            yield key, f"{bound.name} can be wrong by {bound.text(bound.bound)}"


def _keys(bound: Bound) -> tuple[str, ...]:
    probes = word(bound.probes or "probe")
    if bound.figure == "idle_p50":
        return f"{probes}.*.idle.*", "added"
    if bound.figure == "loaded_p50":
        return f"{probes}.*.load.*", "added", "rpm"
    if bound.figure == "added_p50":
        return ("added",)
    return ("loss.*",) if bound.figure == "loss" else ("rate.*",)
