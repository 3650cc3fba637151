# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs in formats of other programs: CSV, Parquet, OpenMetrics, descriptions of published data sets. (Flent's files: ktrxer.flent.)"""

from __future__ import annotations
