# SPDX-License-Identifier: MIT OR Apache-2.0
"""Truth by chance: paths and faults drawn from a seed, and the claims of this project's commands about them (`ktrxer truth --draws N`)."""
