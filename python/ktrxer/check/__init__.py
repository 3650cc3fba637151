# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer check`: is the line bloated, where is the queue, what to do. A run of its own plan, and its reading in three sentences."""
