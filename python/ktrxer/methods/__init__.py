# SPDX-License-Identifier: MIT OR Apache-2.0
"""The estimators of the methods, as the commands use them: arrays in, results out, no network."""

from ktrxer.methods.bandwidth import AvailableBandwidth, Plan, Range
from ktrxer.methods.capacity import Coalescing, Pairs, coalescing, modes, pairs
from ktrxer.methods.native import NoEstimatorsError
from ktrxer.methods.ppt import Ppt, PptPlan, ppt, ppt_of_probes, ppt_plan
from ktrxer.methods.routes import mda_probes

__all__ = [
    "AvailableBandwidth",
    "Coalescing",
    "NoEstimatorsError",
    "Pairs",
    "Plan",
    "Ppt",
    "PptPlan",
    "Range",
    "coalescing",
    "mda_probes",
    "modes",
    "pairs",
    "ppt",
    "ppt_of_probes",
    "ppt_plan",
]
