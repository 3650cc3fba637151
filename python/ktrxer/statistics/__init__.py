# SPDX-License-Identifier: MIT OR Apache-2.0
"""Statistics: arrays in, figures out, no input or output.

native.py loads the C functions of methods/estimate, which the commands use, too. The other modules have the figures that only the Python
part computes. Each docstring names the source of its formula.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# The estimators for users. Each module is loaded at the first use of one of its names: the commands need only a few of them.
_MODULES = {
    "bandwidth": ("AvailableBandwidth", "Plan", "Range"),
    "capacity": ("Coalescing", "Pairs", "coalescing", "modes", "pairs"),
    "fill": ("CapacityInterval", "CapacityMode", "IpCapacity", "ip_capacity"),
    "native": ("NoEstimatorsError",),
    "processing": ("Ppt", "PptChecks", "PptPlan", "ppt", "ppt_of_probes", "ppt_plan"),
    "routes": ("HopQueue", "HopQueues", "hop_queues", "mda_probes"),
    "tcp_pairs": ("Answer", "Losses", "Share", "TcpPair", "tcp_losses", "tcp_pair"),
}
__all__ = [name for names in _MODULES.values() for name in names]


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"ktrxer.statistics.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
