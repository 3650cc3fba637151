# SPDX-License-Identifier: MIT OR Apache-2.0
"""Load and probes by HTTP, and a server for them. The programs here run as processes of a run (runners/http_load.py)."""
