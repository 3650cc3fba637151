# SPDX-License-Identifier: MIT OR Apache-2.0
"""The names of the plots that a test may name. The package that draws them has one plot for each (tests/python/test_catalogue.py)."""

NAMES = (
    "all", "totals", "download", "upload", "ping", "ping_cdf", "oneway", "host_queues", "box_totals", "box_ping", "lateness", "tcp_cwnd",
    "tcp_rtt", "tcp_delivery_rate", "tcp_retransmits", "qdisc", "cpu",
)  # fmt: skip
SCALED = "_scaled"  # suffix of any name: the plot without outliers
