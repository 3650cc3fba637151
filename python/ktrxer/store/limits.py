# SPDX-License-Identifier: MIT OR Apache-2.0
"""Limits of a run. A file that claims more is refused before memory is allocated for it."""

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
# Time stamps differ by nanoseconds, so they do not compress to less than this. More rows a byte indicate a decompression bomb.
ROWS_A_BYTE = 4
ROWS_FREE = 100_000  # rows that are allowed whatever the size of the file
TABLE_BYTES = 4 << 30  # of one table in memory
PAGE_BYTES = 64 << 20  # of one uncompressed page of a Parquet file; writers make pages of one megabyte
# The limit of all tables of one run in memory. Reading and sorting hold three copies; half of the machine's memory stays free.
RUN_BYTES = max(256 << 20, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 6)
RESTARTS = 1000  # attempts of the reader to continue behind damage in a stream
SPAN_NS = 400 * 86400 * 10**9  # the longest distance of a time from the run's zero
