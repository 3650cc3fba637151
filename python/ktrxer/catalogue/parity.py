# SPDX-License-Identifier: MIT OR Apache-2.0
"""The 82 tests of Flent 2.3.0, and the recipe here that does the same. A test without a recipe has none yet."""

from __future__ import annotations

# Names by family, as Flent's folder of tests has them.
FAMILIES: dict[str, tuple[str, ...]] = {
    "rrul": (
        "rrul", "rrul_be", "rrul_be_iperf", "rrul_be_nflows", "rrul_var", "rrul_icmp", "rrul_up", "rrul_noclassification", "rrul_cs8",
        "rrul_prio", "rrul_torrent", "rrul_50_up", "rrul_100_up", "rrul_50_down", "rrul46", "rrul46compete",
    ),
    "RTT fairness": (
        "rtt_fair", "rtt_fair4be", "rtt_fair6be", "rtt_fair_up", "rtt_fair_var", "rtt_fair_var_up", "rtt_fair_var_down",
        "rtt_fair_var_mixed",
    ),
    "TCP": (
        "tcp_1up", "tcp_1down", "tcp_1up_noping", *(f"tcp_{n}{way}" for n in (2, 4, 6, 8, 12) for way in ("up", "down")),
        "tcp_nup", "tcp_ndown", "tcp_upload", "tcp_download", "tcp_bidirectional", "tcp_2up_delay", "tcp_2up_square",
        "tcp_2up_square_westwood", "tcp_4up_squarewave", "tcp_upload_prio", "tcp_upload_1000",
    ),
    "congestion control": (
        *(f"cubic_{other}" for other in ("bbr", "cdg", "dctcp", "ledbat", "reno", "westwood")), "cubic_ledbat_1", "ledbat_cubic_1",
        *(f"reno_cubic_westwood_{other}" for other in ("cdg", "ledbat", "lp")),
    ),
    "imitations": ("cisco_5tcpup", "cisco_5tcpup_2udpflood", "dslreports_8dn", "sctp_vs_tcp"),
    "HTTP": ("http", "http-1up", "http-1down", "http-rrul"),
    "VoIP": ("voip", "voip-1up", "voip-rrul"),
    "UDP": ("udp_flood", "udp_flood_var_up", "udp_flood_var_up_stagger", "bursts", "bursts_11e"),
    "ping": ("ping",),
    "other sources": ("qdisc-stats", "command-output", "mqtt_read", "cpu_stress", "power_usage", "iterated_bidirectional"),
}  # fmt: skip

# Name: the recipe and its parameters. The recipes of Flent's own names stand in catalogue.NAMES.
RECIPES: dict[str, tuple[str, dict[str, str]]] = {
    "tcp_1up": ("tcp_upload", {}),
    "tcp_1down": ("tcp_download", {}),
    **{f"tcp_{n}up": ("tcp_nup", {"upload_streams": str(n)}) for n in (2, 4, 6, 8, 12)},
    **{f"tcp_{n}down": ("tcp_ndown", {"download_streams": str(n)}) for n in (2, 4, 6, 8, 12)},
    "tcp_upload_1000": ("tcp_nup", {"upload_streams": "1000"}),
}

# Of the tests that cannot be what they are in Flent, and why.
EXPLAINED = {
    "sctp_vs_tcp": "broken in Flent 2.3.0 (its netperf runner does not know SCTP_STREAM)",
    "iterated_bidirectional": "broken in Flent 2.3.0 (its runner gets no command)",
}
