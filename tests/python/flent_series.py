# SPDX-License-Identifier: MIT OR Apache-2.0
"""The 84 tests of Flent 2.3.0 and the names of the series that each of them measures: facts, read from the test files of 2.1.1 (those of
command-output, cpu_stress, mqtt_read and power_usage from 2.3.0) with the hosts HOST, HOST2, ... (three where any number is possible) and upload_streams=3, download_streams=3, bidir_streams=4. `x::1..3` stands for x::1, x::2 and x::3. Series that Flent
computes from others (sums, averages, fairness) are not here."""

SERIES: dict[str, tuple[str, ...]] = {
    "bursts": (
        "Ping (ms) UDP EF", "Ping (ms) UDP BK", "Ping (ms) UDP BE", "Ping (ms) ICMP", "Burst 0", "Burst 1", "Burst 2", "Burst 3",
        "Burst 4", "Burst 5",
    ),
    "bursts_11e": (
        "Ping (ms) UDP VO", "Ping (ms) UDP BK", "Ping (ms) UDP VI", "Ping (ms) UDP BE", "Burst 0", "Burst 1", "Burst 2", "Burst 3",
        "Burst 4", "Burst 5",
    ),
    "cisco_5tcpup": (
        "TCP upload BE0 HOST", "TCP upload BE1 HOST2", "TCP upload BE2 HOST3", "TCP upload BE3 HOST4", "TCP upload BE4 HOST5",
        "Ping (ms) ICMP0 HOST", "Ping (ms) ICMP1 HOST2", "Ping (ms) ICMP2 HOST3", "Ping (ms) ICMP3 HOST4", "Ping (ms) ICMP4 HOST5",
    ),
    "cisco_5tcpup_2udpflood": (
        "UDP upload", "TCP upload BE0 HOST", "TCP upload BE1 HOST2", "TCP upload BE2 HOST3", "TCP upload BE3 HOST4",
        "TCP upload BE4 HOST5", "Ping (ms) ICMP0 HOST", "Ping (ms) ICMP1 HOST2", "Ping (ms) ICMP2 HOST3", "Ping (ms) ICMP3 HOST4",
        "Ping (ms) ICMP4 HOST5",
    ),
    "command-output": ("command-values",),
    "cpu_stress": ("cpu_stressor",),
    "cubic_bbr": (
        "TCP upload Cubic BE", "TCP upload BBR BE", "TCP upload Cubic CS1", "TCP upload BBR CS1", "TCP download Cubic BE",
        "TCP download BBR BE", "TCP download Cubic CS1", "TCP download BBR CS1", "Ping (ms) UDP BE", "Ping (ms) UDP CS1",
        "Ping (ms) UDP CS6", "Ping (ms) ICMP",
    ),
    "cubic_cdg": (
        "TCP upload Cubic BE", "TCP upload CDG BE", "TCP upload Cubic CS1", "TCP upload CDG CS1", "TCP download Cubic BE",
        "TCP download CDG BE", "TCP download Cubic CS1", "TCP download CDG CS1", "Ping (ms) UDP BE", "Ping (ms) UDP CS1",
        "Ping (ms) UDP CS6", "Ping (ms) ICMP",
    ),
    "cubic_dctcp": (
        "TCP upload Cubic BE", "TCP upload dctcp BE", "TCP upload Cubic CS1", "TCP upload dctcp CS1", "TCP download Cubic BE",
        "TCP download dctcp BE", "TCP download Cubic CS1", "TCP download dctcp CS1", "Ping (ms) UDP BE", "Ping (ms) UDP CS1",
        "Ping (ms) UDP CS6", "Ping (ms) ICMP",
    ),
    "cubic_ledbat": (
        "TCP upload Cubic BE", "TCP upload Ledbat BE", "TCP upload Cubic CS1", "TCP upload Ledbat CS1", "TCP download Cubic BE",
        "TCP download Ledbat BE", "TCP download Cubic CS1", "TCP download Ledbat CS1", "Ping (ms) UDP BE", "Ping (ms) UDP CS1",
        "Ping (ms) UDP CS6", "Ping (ms) ICMP",
    ),
    "cubic_ledbat_1": ("TCP cubic", "TCP ledbat", "Ping (ms) ICMP",),
    "cubic_reno": (
        "TCP upload Cubic BE", "TCP upload Reno BE", "TCP upload Cubic CS1", "TCP upload Reno CS1", "TCP download Cubic BE",
        "TCP download Reno BE", "TCP download Cubic CS1", "TCP download Reno CS1", "Ping (ms) UDP BE", "Ping (ms) UDP CS1",
        "Ping (ms) UDP CS6", "Ping (ms) ICMP",
    ),
    "cubic_westwood": (
        "TCP upload Cubic BE", "TCP upload Westwood BE", "TCP upload Cubic CS1", "TCP upload Westwood CS1", "TCP download Cubic BE",
        "TCP download Westwood BE", "TCP download Cubic CS1", "TCP download Westwood CS1", "Ping (ms) UDP BE", "Ping (ms) UDP CS1",
        "Ping (ms) UDP CS6", "Ping (ms) ICMP",
    ),
    "dashtest": ("Dash",),
    "dslreports_8dn": ("TCP download BE::1..8", "Ping (ms) TCP BE1", "Ping (ms) TCP BE2", "Ping (ms) TCP BE3", "Ping (ms) ICMP",),
    "http": ("HTTP latency",),
    "http-1down": ("HTTP latency", "TCP download",),
    "http-1up": ("HTTP latency", "TCP upload",),
    "http-rrul": (
        "HTTP latency", "TCP upload BE", "TCP upload BE2", "TCP upload BE3", "TCP upload BE4", "TCP download BE", "TCP download BE2",
        "TCP download BE3", "TCP download BE4", "Ping (ms) UDP BE1", "Ping (ms) UDP BE2", "Ping (ms) UDP BE3", "Ping (ms) ICMP",
    ),
    "iterated_bidirectional": ("TCP download", "TCP upload",),
    "ledbat_cubic_1": ("TCP ledbat", "TCP cubic", "Ping (ms) ICMP",),
    "mqtt_read": ("mqtt_data",),
    "ping": ("Ping (ms) ICMP", "Ping (ms) UDP",),
    "power_usage": ("ipmi_power", "mqtt_power",),
    "qdisc-stats": ("qdisc-stats",),
    "reno_cubic_westwood_cdg": (
        "TCP upload RENO", "TCP upload WESTWOOD", "TCP upload CUBIC", "TCP upload CDG", "TCP download RENO", "TCP download WESTWOOD",
        "TCP download CUBIC", "TCP download CDG", "Ping (ms) UDP EF", "Ping (ms) UDP BK", "Ping (ms) UDP BE", "Ping (ms) ICMP",
    ),
    "reno_cubic_westwood_ledbat": (
        "TCP upload RENO", "TCP upload WESTWOOD", "TCP upload CUBIC", "TCP upload LEDBAT", "TCP download RENO", "TCP download WESTWOOD",
        "TCP download CUBIC", "TCP download LEDBAT", "Ping (ms) UDP EF", "Ping (ms) UDP BK", "Ping (ms) UDP BE", "Ping (ms) ICMP",
    ),
    "reno_cubic_westwood_lp": (
        "TCP upload RENO", "TCP upload WESTWOOD", "TCP upload CUBIC", "TCP upload LP", "TCP download RENO", "TCP download WESTWOOD",
        "TCP download CUBIC", "TCP download LP", "Ping (ms) UDP EF", "Ping (ms) UDP BK", "Ping (ms) UDP BE", "Ping (ms) ICMP",
    ),
    "rrul": (
        "TCP upload BE", "TCP upload BK", "TCP upload CS5", "TCP upload EF", "TCP download BE", "TCP download BK", "TCP download CS5",
        "TCP download EF", "Ping (ms) UDP EF", "Ping (ms) UDP BK", "Ping (ms) UDP BE", "Ping (ms) ICMP",
    ),
    "rrul46": (
        "TCP upload BE", "TCP upload BK", "TCP upload CS5", "TCP upload EF", "TCP download BE", "TCP download BK", "TCP download CS5",
        "TCP download EF", "Ping (ms) UDP BK", "Ping (ms) UDP BE", "Ping (ms) ICMP", "Ping (ms) UDP6 BE", "Ping (ms) UDP6 BK",
    ),
    "rrul46compete": (
        "TCP upload BE", "TCP upload BK", "TCP upload 6BE", "TCP upload 6BK", "TCP download BK", "TCP download 6BK", "TCP download BE",
        "TCP download 6BE", "Ping (ms) UDP 6EF", "Ping (ms) UDP 6BK", "Ping (ms) UDP BE", "Ping (ms) UDP 6BE", "Ping (ms) ICMP",
        "Ping (ms) ICMP6",
    ),
    "rrul_100_up": (
        "TCP upload BE::1..100", "TCP download BE", "Ping (ms) UDP BE1", "Ping (ms) UDP BE2", "Ping (ms) UDP BE3", "Ping (ms) ICMP",
    ),
    "rrul_50_down": (
        "TCP upload BE", "TCP download BE::1..50", "Ping (ms) UDP BE1", "Ping (ms) UDP BE2", "Ping (ms) UDP BE3", "Ping (ms) ICMP",
    ),
    "rrul_50_up": (
        "TCP upload BE::1..50", "TCP download BE", "Ping (ms) UDP BE1", "Ping (ms) UDP BE2", "Ping (ms) UDP BE3", "Ping (ms) ICMP",
    ),
    "rrul_be": (
        "TCP upload BE", "TCP upload BE2", "TCP upload BE3", "TCP upload BE4", "TCP download BE", "TCP download BE2", "TCP download BE3",
        "TCP download BE4", "Ping (ms) UDP BE1", "Ping (ms) UDP BE2", "Ping (ms) UDP BE3", "Ping (ms) ICMP",
    ),
    "rrul_be_iperf": (
        "TCP upload BE", "TCP upload BE2", "TCP upload BE3", "TCP upload BE4", "TCP download BE", "TCP download BE2", "TCP download BE3",
        "TCP download BE4", "Ping (ms) UDP BE1", "Ping (ms) UDP BE2", "Ping (ms) UDP BE3", "Ping (ms) ICMP",
    ),
    "rrul_be_nflows": ("TCP upload BE::1..3", "TCP download BE::1..3", "Ping (ms) UDP BE", "Ping (ms) ICMP",),
    "rrul_cs8": (
        "TCP upload CS0_BE", "TCP upload CS1_BK", "TCP upload CS2", "TCP upload CS3", "TCP upload CS4", "TCP upload CS5",
        "TCP upload CS6", "TCP upload CS7", "TCP download CS0_BE", "TCP download CS1_BK", "TCP download CS2", "TCP download CS3",
        "TCP download CS4", "TCP download CS5", "TCP download CS6", "TCP download CS7", "Ping (ms) UDP CS7", "Ping (ms) UDP CS6",
        "Ping (ms) UDP CS5", "Ping (ms) UDP CS4", "Ping (ms) UDP CS3", "Ping (ms) UDP CS2", "Ping (ms) UDP CS1_BK",
        "Ping (ms) UDP CS0_BE", "Ping (ms) ICMP",
    ),
    "rrul_icmp": (
        "TCP upload BE", "TCP upload BE2", "TCP upload BE3", "TCP upload BE4", "TCP download BE", "TCP download BE2", "TCP download BE3",
        "TCP download BE4", "Ping (ms) ICMP",
    ),
    "rrul_noclassification": (
        "TCP upload BE", "TCP upload BE2", "TCP upload BE3", "TCP upload BE4", "TCP download BE", "TCP download BE2", "TCP download BE3",
        "TCP download BE4", "Ping (ms) UDP EF", "Ping (ms) UDP BK", "Ping (ms) UDP BE", "Ping (ms) ICMP",
    ),
    "rrul_prio": (
        "TCP upload BE", "TCP upload BE2", "TCP upload BE3", "TCP upload BE4", "TCP download BE", "TCP download BE2", "TCP download BE3",
        "TCP download BE4", "Ping (ms) UDP BE1", "Ping (ms) ICMP", "Ping (ms) UDP PRIO", "Ping (ms) ICMP PRIO",
    ),
    "rrul_torrent": (
        "TCP upload Torrent::1..6", "TCP upload BE", "TCP download Torrent::1..6", "TCP download BE", "Ping (ms) UDP EF",
        "Ping (ms) UDP BK", "Ping (ms) UDP BE", "Ping (ms) ICMP",
    ),
    "rrul_up": (
        "TCP upload BE", "TCP upload BK", "TCP upload CS5", "TCP upload EF", "Ping (ms) UDP EF", "Ping (ms) UDP BK", "Ping (ms) UDP BE",
        "Ping (ms) ICMP",
    ),
    "rrul_var": (
        "Ping (ms)::ICMP", "Ping (ms)::UDP 0 (CS0)", "TCP upload::0 (CS0)", "TCP download::0 (CS0)", "Ping (ms)::UDP 1 (CS0)",
        "TCP upload::1 (CS0)", "TCP download::1 (CS0)", "Ping (ms)::UDP 2 (CS0)", "TCP upload::2 (CS0)", "TCP download::2 (CS0)",
        "Ping (ms)::UDP 3 (CS0)", "TCP upload::3 (CS0)", "TCP download::3 (CS0)",
    ),
    "rtt_fair": (
        "TCP upload BE1 HOST", "TCP download BE1 HOST", "Ping (ms) ICMP1 HOST", "TCP upload BE2 HOST2", "TCP download BE2 HOST2",
        "Ping (ms) ICMP2 HOST2", "TCP upload BK1 HOST3", "TCP download BK1 HOST3", "Ping (ms) ICMP3 HOST3", "TCP upload BK2 HOST4",
        "TCP download BK2 HOST4", "Ping (ms) ICMP4 HOST4",
    ),
    "rtt_fair4be": (
        "TCP upload BE1 HOST", "TCP download BE1 HOST", "Ping (ms) ICMP1 HOST", "TCP upload BE2 HOST2", "TCP download BE2 HOST2",
        "Ping (ms) ICMP2 HOST2", "TCP upload BE3 HOST3", "TCP download BE3 HOST3", "Ping (ms) ICMP3 HOST3", "TCP upload BE4 HOST4",
        "TCP download BE4 HOST4", "Ping (ms) ICMP4 HOST4",
    ),
    "rtt_fair6be": (
        "TCP upload BE1 HOST", "TCP download BE1 HOST", "Ping (ms) ICMP1 HOST", "TCP upload BE2 HOST2", "TCP download BE2 HOST2",
        "Ping (ms) ICMP2 HOST2", "TCP upload BE3 HOST3", "TCP download BE3 HOST3", "Ping (ms) ICMP3 HOST3", "TCP upload BE4 HOST4",
        "TCP download BE4 HOST4", "Ping (ms) ICMP4 HOST4", "TCP upload BE5 HOST5", "TCP download BE5 HOST5", "Ping (ms) ICMP5 HOST5",
        "TCP upload BE6 HOST6", "TCP download BE6 HOST6", "Ping (ms) ICMP6 HOST6",
    ),
    "rtt_fair_up": (
        "TCP upload BE1 HOST", "Ping (ms) ICMP1 HOST", "TCP upload BE2 HOST2", "Ping (ms) ICMP2 HOST2", "TCP upload BE3 HOST3",
        "Ping (ms) ICMP3 HOST3", "TCP upload BE4 HOST4", "Ping (ms) ICMP4 HOST4",
    ),
    "rtt_fair_var": (
        "TCP upload BE HOST", "TCP download BE HOST", "Ping (ms) ICMP HOST", "TCP upload BE HOST2", "TCP download BE HOST2",
        "Ping (ms) ICMP HOST2", "TCP upload BE HOST3", "TCP download BE HOST3", "Ping (ms) ICMP HOST3",
    ),
    "rtt_fair_var_down": (
        "TCP download BE HOST", "Ping (ms) ICMP HOST", "TCP download BE HOST2", "Ping (ms) ICMP HOST2", "TCP download BE HOST3",
        "Ping (ms) ICMP HOST3",
    ),
    "rtt_fair_var_mixed": (
        "TCP upload BE HOST", "TCP download BE HOST", "Ping (ms) ICMP HOST", "TCP upload BE HOST2", "TCP download BE HOST2",
        "Ping (ms) ICMP HOST2", "TCP upload BE HOST3", "TCP download BE HOST3", "Ping (ms) ICMP HOST3",
    ),
    "rtt_fair_var_up": (
        "TCP upload BE HOST", "Ping (ms) ICMP HOST", "TCP upload BE HOST2", "Ping (ms) ICMP HOST2", "TCP upload BE HOST3",
        "Ping (ms) ICMP HOST3",
    ),
    "sctp_vs_tcp": (
        "TCP upload CS0", "SCTP upload CS0", "TCP upload CS1", "SCTP upload CS1", "TCP download CS0", "SCTP download CS0",
        "TCP download CS1", "SCTP download CS1", "Ping (ms) UDP CS0", "Ping (ms) SCTP CS0", "Ping (ms) TCP CS0", "Ping (ms) ICMP",
    ),
    "tcp_12down": ("Ping (ms) ICMP", "TCP download::1..12",),
    "tcp_12up": ("Ping (ms) ICMP", "TCP upload::1..12",),
    "tcp_1down": ("TCP download", "Ping (ms) ICMP",),
    "tcp_1up": ("TCP upload", "Ping (ms) ICMP",),
    "tcp_1up_noping": ("TCP upload",),
    "tcp_2down": ("Ping (ms) ICMP", "TCP download::1..2",),
    "tcp_2up": ("Ping (ms) ICMP", "TCP upload::1..2",),
    "tcp_2up_delay": ("TCP stream 1", "TCP stream 2",),
    "tcp_2up_square": ("TCP cubic", "TCP cubic 2", "TCP reno", "TCP westwood",),
    "tcp_2up_square_westwood": ("TCP westwood baseline", "TCP cubic 2", "TCP reno", "TCP westwood",),
    "tcp_4down": ("Ping (ms) ICMP", "TCP download::1..4",),
    "tcp_4up": ("Ping (ms) ICMP", "TCP upload::1..4",),
    "tcp_4up_squarewave": ("TCP bbr 1", "TCP cubic 2", "TCP cubic 3", "TCP bbr 4",),
    "tcp_6down": ("Ping (ms) ICMP", "TCP download::1..6",),
    "tcp_50up": ("Ping (ms) ICMP", "TCP upload::1..50",),
    "tcp_6up": ("Ping (ms) ICMP", "TCP upload::1..6",),
    "tcp_8down": ("Ping (ms) ICMP", "TCP download::1..8",),
    "tcp_8up": ("Ping (ms) ICMP", "TCP upload::1..8",),
    "tcp_bidirectional": ("TCP download", "TCP upload", "Ping (ms) ICMP",),
    "tcp_download": ("TCP download", "Ping (ms) ICMP",),
    "tcp_ndown": ("Ping (ms) ICMP", "TCP download::1..3",),
    "tcp_nup": ("Ping (ms) ICMP", "TCP upload::1..3",),
    "tcp_upload": ("TCP upload", "Ping (ms) ICMP",),
    "tcp_upload_1000": ("TCP upload BE::1..1000", "Ping (ms) UDP BE1", "Ping (ms) UDP BE2", "Ping (ms) UDP BE3", "Ping (ms) ICMP",),
    "tcp_upload_prio": ("TCP upload", "TCP upload2", "Ping (ms) ICMP", "Ping (ms) ICMP PRIO",),
    "udp_flood": ("UDP upload", "Ping (ms) ICMP",),
    "udp_flood_var_up": (
        "UDP upload HOST", "Ping (ms) ICMP HOST", "UDP upload HOST2", "Ping (ms) ICMP HOST2", "UDP upload HOST3", "Ping (ms) ICMP HOST3",
    ),
    "udp_flood_var_up_stagger": (
        "UDP upload HOST", "Ping (ms) ICMP HOST", "UDP upload HOST2", "Ping (ms) ICMP HOST2", "UDP upload HOST3", "Ping (ms) ICMP HOST3",
    ),
    "voip": ("VoIP",),
    "voip-1up": ("VoIP", "TCP upload",),
    "voip-rrul": (
        "TCP upload BE", "TCP upload BE2", "TCP upload BE3", "TCP upload BE4", "TCP download BE", "TCP download BE2", "TCP download BE3",
        "TCP download BE4", "Ping (ms) UDP BE1", "Ping (ms) UDP BE2", "Ping (ms) UDP BE3", "Ping (ms) ICMP", "VoIP",
    ),
}  # fmt: skip
