# SPDX-License-Identifier: MIT OR Apache-2.0
"""Names of files. Apart from the modules that open them, because a list of runs from the cache opens none."""

from __future__ import annotations

META = "meta.json"
SUFFIX = ".ktrxer"
# A run that is not finished: the suffix of its directory, the suffix of a stream in it, and the lock file of the writer.
PART = ".part"
STREAM = ".arrows"
LOCK = "lock"

BYTES_MOST = 200  # of a name that a user gives


def checked(text: str) -> str:
    """A name that a user gives to a file, without a suffix. ValueError: it is none."""
    if not text.isprintable() or not text.strip() or "/" in text or text[0] in ".-" or len(text.encode()) > BYTES_MOST:
        raise ValueError(f"{text[:60]!r} is no name of a file: at most {BYTES_MOST} bytes without /, and the first one is not . or -")
    return text
