# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a run may be at most. A file that claims more is refused before anything is allocated for it."""

from __future__ import annotations

import os

META_BYTES = 32 << 20  # of meta.json
VALUES = 500_000  # in meta.json: each takes about a microsecond
MEMBERS = 64  # files in the zip
DIRECTORY_BYTES = 64 << 10  # of the zip's central directory
TEXT = 1 << 20  # characters of one string
ITEMS = 100_000  # of one list in meta.json
SERIES = 20_000
RUNNERS = 5_000
PHASES = 1_000
DEPTH = 32  # of nested free JSON
ROWS = 1 << 28  # of one table
# Times that differ by nanoseconds cannot be packed as densely as this: more rows a byte is a bomb.
ROWS_A_BYTE = 4
ROWS_FREE = 100_000  # so many are small in any case
TABLE_BYTES = 4 << 30  # of one table in memory
PAGE_BYTES = 64 << 20  # of one page of a Parquet file, unpacked: writers make pages of a megabyte
# Of all tables of one run in memory. Reading and sorting hold three copies, and half of the machine's memory stays for others.
RUN_BYTES = max(256 << 20, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 6)
RESTARTS = 1000  # of the reader of a damaged stream, behind what it cannot read
SPAN_NS = 400 * 86400 * 10**9  # a run's times lie within so long of its zero
