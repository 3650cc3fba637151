# SPDX-License-Identifier: MIT OR Apache-2.0
"""The device lab: real kernels on small emulated devices, on any machine.

`boot()` runs one command in an emulated device and returns its output, files and exit status. See docs/howto/lab.md.
"""

from __future__ import annotations

from ktrxer_lab.errors import GuestFailure, LabError

__version__ = "0.1.0"
__all__ = ["GuestFailure", "LabError"]
