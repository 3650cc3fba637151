# SPDX-License-Identifier: MIT OR Apache-2.0
"""A run in figures: figures.py makes them, text.py prints them for people."""

from __future__ import annotations
