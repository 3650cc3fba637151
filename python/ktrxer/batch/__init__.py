# SPDX-License-Identifier: MIT OR Apache-2.0
"""Series of runs: a file describes them (spec.py), plan.py expands and orders them, execute.py makes them, journal.py holds the state."""

from __future__ import annotations
