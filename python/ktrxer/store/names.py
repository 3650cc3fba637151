# SPDX-License-Identifier: MIT OR Apache-2.0
"""Names of files. Apart from the modules that open them, because a list of runs from the cache opens none."""

from __future__ import annotations

META = "meta.json"
SUFFIX = ".ktrxer"
# A run that is not finished: the suffix of its directory, the suffix of a stream in it, and the lock file of the writer.
PART = ".part"
STREAM = ".arrows"
LOCK = "lock"
