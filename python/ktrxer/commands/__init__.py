# SPDX-License-Identifier: MIT OR Apache-2.0
"""Subcommands of the experiment floor, one file each: words in, an exit status out."""

from __future__ import annotations
