# SPDX-License-Identifier: MIT OR Apache-2.0
from __future__ import annotations

from ktrxer.store.errors import StoreError


class FlentError(StoreError):
    """A file cannot be read or written: one line that says which, where in it, and why."""
