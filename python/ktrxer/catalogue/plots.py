# SPDX-License-Identifier: MIT OR Apache-2.0
"""The names of the plots that a test may name. The package that draws them has one plot for each (tests/python/test_catalogue.py)."""

NAMES = (
    "all", "totals", "download", "upload", "ping", "ping_cdf", "oneway", "host_queues", "box_totals", "box_ping", "lateness", "tcp_cwnd",
    "tcp_rtt", "tcp_delivery_rate", "tcp_retransmits", "qdisc", "cpu", "ping_band", "ping_ccdf", "ping_events", "ping_heat",
    "ping_histogram", "ping_violin", "ping_by_run", "ping_by_class", "ping_difference",
)  # fmt: skip
SCALED = "_scaled"  # suffix of any name: the plot without outliers
