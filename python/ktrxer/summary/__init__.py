# SPDX-License-Identifier: MIT OR Apache-2.0
"""A run in figures: figures.py computes them, text.py formats them for a terminal."""

from __future__ import annotations

VOICE = "VoIP"  # group of the series of calls
