# SPDX-License-Identifier: MIT OR Apache-2.0
"""The estimators of the methods, as the commands use them: arrays in, results out, no network."""

from ktrxer.methods.bandwidth import AvailableBandwidth, Plan, Range
from ktrxer.methods.capacity import Coalescing, Pairs, coalescing, modes, pairs
from ktrxer.methods.fill import CapacityInterval, CapacityMode, IpCapacity, ip_capacity
from ktrxer.methods.losses import Answer, Losses, Share, TcpPair, tcp_losses, tcp_pair
from ktrxer.methods.native import NoEstimatorsError
from ktrxer.methods.ppt import Ppt, PptPlan, ppt, ppt_of_probes, ppt_plan
from ktrxer.methods.routes import HopQueue, HopQueues, hop_queues, mda_probes

__all__ = [
    "Answer",
    "AvailableBandwidth",
    "CapacityInterval",
    "CapacityMode",
    "Coalescing",
    "HopQueue",
    "HopQueues",
    "IpCapacity",
    "Losses",
    "NoEstimatorsError",
    "Pairs",
    "Plan",
    "Ppt",
    "PptPlan",
    "Range",
    "Share",
    "TcpPair",
    "coalescing",
    "hop_queues",
    "ip_capacity",
    "mda_probes",
    "modes",
    "pairs",
    "ppt",
    "ppt_of_probes",
    "ppt_plan",
    "tcp_losses",
    "tcp_pair",
]
