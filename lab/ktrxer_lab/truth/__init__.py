# SPDX-License-Identifier: MIT OR Apache-2.0
"""Paths whose capacity, delays, losses and queues are known by construction, and the figures that tools print for them (`ktrxer truth`)."""
