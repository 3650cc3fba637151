# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is recorded beside a measurement: counters on a timer (collectors), and the state of hosts before and after (metadata)."""

from __future__ import annotations

from ktrxer.collect.collector import Collector, CollectorError, Sample

__all__ = ["Collector", "CollectorError", "Sample"]
