# SPDX-License-Identifier: MIT OR Apache-2.0
"""The device lab: real kernels on small emulated devices, on any machine.

`boot()` runs one command in an emulated device and returns its output, files and exit status. See docs/howto/lab.md.
"""

from __future__ import annotations

from ktrxer.lab.errors import GuestFailure, LabError

__all__ = ["GuestFailure", "LabError"]
