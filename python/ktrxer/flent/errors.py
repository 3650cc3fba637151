# SPDX-License-Identifier: MIT OR Apache-2.0
from __future__ import annotations

from ktrxer.store.errors import StoreError


class FlentError(StoreError):
    """A file cannot be read or written. The text is one line: the file, the place in it, the reason."""
