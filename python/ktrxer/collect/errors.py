# SPDX-License-Identifier: MIT OR Apache-2.0
"""The error of this package."""

from __future__ import annotations


class StateError(Exception):
    """A part of this host's state cannot be read. The text is one line: what is missing, what to do."""
