# SPDX-License-Identifier: MIT OR Apache-2.0
"""Many runs: their figures, groups of them, differences of groups. Nothing here prints."""

from __future__ import annotations
