# SPDX-License-Identifier: MIT OR Apache-2.0
"""Stopping points of `ktrxer trace`."""

from __future__ import annotations

import ctypes

from ktrxer.methods import native


def mda_probes(hops: int, failure: float = 0.05) -> int:
    """How many probes with different flow identifiers exclude another next hop after hops - 1 were seen, but for `failure`."""
    count: int = native.library().ktrxer_py_mda_probes(native.uint32(hops), ctypes.c_double(failure))
    if count < 0:
        native.fail(count, f"{hops} next hops, a failure of {failure}: hops from 2 to 256, a failure between 0 and 1")
    return count
