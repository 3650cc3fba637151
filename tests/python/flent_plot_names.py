# SPDX-License-Identifier: MIT OR Apache-2.0
"""The names of the plots that each test of Flent 2.3.0 ships: tests with the same names share a row."""

from __future__ import annotations

# The plots of sockets, which every test with TCP flows has.
SOCKETS = ("tcp_cwnd", "tcp_rtt", "tcp_rtt_cdf", "tcp_rtt_box_combine", "tcp_rtt_bar_combine", "tcp_pacing")

# (tests, plots without those of sockets, whether the test has those of sockets, too)
_ROWS: tuple[tuple[str, str, bool], ...] = (
    (
        "bursts",
        "box_ping icmp_cdf ping ping_cdf qq_icmp",
        True,
    ),
    (
        "bursts_11e",
        "box_ping ping ping_cdf",
        True,
    ),
    (
        "cisco_5tcpup tcp_upload_1000",
        "all all_scaled box_ping box_totals box_upload icmp_cdf ping ping_cdf ping_scaled totals totals_scaled upload upload_scaled",
        True,
    ),
    (
        "cisco_5tcpup_2udpflood",
        "all all_scaled icmp_cdf ping ping_cdf ping_scaled totals totals_scaled upload upload_scaled",
        True,
    ),
    (
        "command-output",
        "command-values",
        False,
    ),
    (
        "cpu_stress",
        "cpu_runners",
        False,
    ),
    (
        "cubic_bbr cubic_cdg cubic_dctcp cubic_ledbat cubic_reno cubic_westwood rrul_noclassification sctp_vs_tcp",
        "all all_scaled box_download box_ping box_totals box_upload download download_scaled icmp_cdf ping ping_cdf ping_scaled "
        "qq_download qq_icmp qq_upload totals totals_scaled upload upload_scaled",
        True,
    ),
    (
        "cubic_ledbat_1 ledbat_cubic_1",
        "ping_cdf totals",
        True,
    ),
    (
        "dashtest",
        "buffer dash throughput",
        False,
    ),
    (
        "dslreports_8dn",
        "all all_scaled box_download box_ping box_totals download download_scaled icmp_cdf ping ping_cdf ping_scaled totals totals_scaled",
        True,
    ),
    (
        "http",
        "http_box_combine http_delay http_delay_cdf",
        True,
    ),
    (
        "http-1down http-1up",
        "bandwidth bar_combine box_combine box_total cdf_combine http_box_combine http_delay http_delay_cdf totals",
        True,
    ),
    (
        "http-rrul",
        "all all_scaled all_scaled_delivery bar_combine bar_totals box_combine box_download box_ping box_ping_combine "
        "box_totals box_upload cdf_combine download download_scaled ellipsis ellipsis_combine ellipsis_combine_both "
        "ellipsis_down ellipsis_sum http_box_combine http_delay http_delay_cdf icmp_cdf icmp_combine ping ping_cdf ping_delay "
        "ping_scaled qq_download qq_icmp qq_upload tcp_delivery_rate tcp_delivery_with_rtt totals totals_bandwidth "
        "totals_combine totals_delay totals_scaled upload upload_scaled",
        True,
    ),
    (
        "iterated_bidirectional",
        "box timeseries",
        False,
    ),
    (
        "mqtt_read",
        "mqtt_data",
        False,
    ),
    (
        "ping",
        "ping ping_cdf",
        True,
    ),
    (
        "power_usage",
        "cpu_runners power power_bar_combine power_combine power_combine_ipmi power_combine_wall",
        False,
    ),
    (
        "qdisc-stats",
        "backlog delay drops",
        False,
    ),
    (
        "reno_cubic_westwood_cdg reno_cubic_westwood_ledbat reno_cubic_westwood_lp",
        "all all_scaled download download_scaled ping ping_cdf ping_scaled totals totals_scaled upload upload_scaled",
        True,
    ),
    (
        "rrul rrul46",
        "all all_scaled bar_combine_down bar_combine_up box_combine box_combine_down box_combine_up box_download box_ping "
        "box_totals box_upload download download_scaled ellipsis ellipsis_down ellipsis_sum icmp_cdf icmp_combine ping ping_cdf "
        "ping_scaled qq_download qq_icmp qq_upload totals totals_bandwidth totals_scaled upload upload_scaled",
        True,
    ),
    (
        "rrul46compete",
        "all all_scaled box_download box_ping box_totals box_upload download download_scaled ping ping_cdf ping_scaled totals "
        "totals_scaled upload upload_scaled",
        True,
    ),
    (
        "rrul_100_up rrul_50_down rrul_50_up",
        "all all_scaled box_download box_ping box_totals box_upload download download_scaled icmp_cdf ping ping_cdf ping_scaled "
        "totals totals_scaled upload upload_scaled",
        True,
    ),
    (
        "rrul_be rrul_be_iperf rrul_icmp rrul_prio",
        "all all_scaled all_scaled_delivery bar_combine bar_totals box_combine box_download box_ping box_ping_combine "
        "box_totals box_upload cdf_combine download download_scaled ellipsis ellipsis_combine ellipsis_combine_both "
        "ellipsis_down ellipsis_sum icmp_cdf icmp_combine ping ping_cdf ping_scaled qq_download qq_icmp qq_upload "
        "tcp_delivery_rate tcp_delivery_with_rtt totals totals_bandwidth totals_combine totals_scaled upload upload_scaled",
        True,
    ),
    (
        "rrul_be_nflows rrul_var",
        "all all_scaled bar_combine bar_totals box_combine box_download box_ping box_totals box_upload cdf_combine download "
        "download_scaled ellipsis ellipsis_combine ellipsis_combine_both ellipsis_down ellipsis_sum icmp_cdf icmp_combine ping "
        "ping_cdf ping_scaled qq_download qq_icmp qq_upload totals totals_bandwidth totals_combine totals_scaled upload "
        "upload_scaled",
        True,
    ),
    (
        "rrul_cs8",
        "all all_scaled box_combine box_download box_ping box_totals box_upload download download_scaled ellipsis ellipsis_down "
        "ellipsis_sum icmp_cdf icmp_combine ping ping_cdf ping_scaled qq_download qq_icmp qq_upload totals totals_bandwidth "
        "totals_scaled upload upload_scaled",
        True,
    ),
    (
        "rrul_torrent",
        "all all_scaled box_combine box_download box_ping box_totals box_upload download download_scaled icmp_cdf ping ping_cdf "
        "ping_scaled qq_download qq_icmp qq_upload totals totals_bandwidth totals_scaled upload upload_scaled",
        True,
    ),
    (
        "rrul_up",
        "all all_scaled bar_combine_up box_combine box_combine_up box_ping box_totals box_upload ellipsis ellipsis_sum icmp_cdf "
        "icmp_combine ping ping_cdf ping_scaled qq_icmp qq_upload totals totals_bandwidth totals_scaled upload upload_scaled",
        True,
    ),
    (
        "rtt_fair rtt_fair4be rtt_fair6be rtt_fair_var rtt_fair_var_mixed",
        "all all_scaled bar_combine bar_combine_down bar_combine_throughput bar_combine_up bar_fairness box_combine "
        "box_combine_down box_combine_throughput box_combine_up box_download box_ping box_totals box_upload download "
        "download_scaled ping ping_cdf ping_cdf_combine ping_scaled totals totals_scaled upload upload_scaled",
        True,
    ),
    (
        "rtt_fair_up rtt_fair_var_up",
        "all all_scaled bar_combine bar_combine_throughput bar_combine_up bar_fairness box_combine box_combine_throughput "
        "box_combine_up box_ping box_totals box_upload ping ping_cdf ping_cdf_combine ping_scaled totals totals_scaled upload "
        "upload_scaled",
        True,
    ),
    (
        "rtt_fair_var_down",
        "all all_scaled bar_combine bar_combine_down bar_combine_throughput bar_fairness box_combine box_combine_down "
        "box_combine_throughput box_download box_ping box_totals download download_scaled ping ping_cdf ping_cdf_combine "
        "ping_scaled totals totals_scaled",
        True,
    ),
    (
        "tcp_12down tcp_2down tcp_4down tcp_6down tcp_8down tcp_ndown",
        "bar_combine bar_fairness box_combine box_ping_combine box_totals box_totals_combine download download_scaled ping "
        "ping_cdf ping_smooth totals",
        True,
    ),
    (
        "tcp_12up tcp_2up tcp_4up tcp_50up tcp_6up tcp_8up tcp_nup",
        "bar_combine bar_fairness box_combine box_ping_combine box_totals box_totals_combine ping ping_cdf ping_smooth "
        "tcp_delivery_with_ping tcp_delivery_with_rtt totals upload upload_box upload_scaled upload_with_ping "
        "upload_with_ping_and_tcp_rtt",
        True,
    ),
    (
        "tcp_1down",
        "bar_totals bar_totals_combine box_ping_combine box_totals box_totals_combine ping_cdf totals",
        False,
    ),
    (
        "tcp_1up",
        "bandwidth bar_totals bar_totals_combine box_ping_combine box_totals box_totals_combine ping_cdf ping_cdf_combine "
        "tcp_delivery_with_rtt totals totals_with_tcp_rtt",
        True,
    ),
    (
        "tcp_1up_noping",
        "totals",
        True,
    ),
    (
        "tcp_2up_delay tcp_2up_square tcp_2up_square_westwood tcp_4up_squarewave",
        "box_combine totals totals_5s",
        True,
    ),
    (
        "tcp_bidirectional tcp_upload",
        "box_totals ping ping_cdf ping_smooth totals",
        True,
    ),
    (
        "tcp_download",
        "box_totals download download_average ping ping_cdf ping_smooth totals",
        True,
    ),
    (
        "tcp_upload_prio",
        "box_totals ping ping_cdf ping_hiprio totals",
        True,
    ),
    (
        "udp_flood",
        "ping ping_cdf totals",
        True,
    ),
    (
        "udp_flood_var_up udp_flood_var_up_stagger",
        "ping ping_cdf ping_cdf_combine totals totals_throughput udp_tcp_combine upload upload_bar",
        True,
    ),
    (
        "voip",
        "voip_bitrate voip_box_delay_loss voip_delay voip_delay_box voip_delay_cdf voip_delay_loss voip_induced_delay "
        "voip_induced_delay_box voip_induced_delay_cdf voip_loss voip_mos_combine voip_mos_upload",
        False,
    ),
    (
        "voip-1up",
        "bandwidth bar_cdf bar_upload box_combine cdf_combine totals totals_loss voip_bitrate voip_box_delay_loss voip_delay "
        "voip_delay_box voip_delay_cdf voip_delay_loss voip_induced_delay voip_induced_delay_box voip_induced_delay_cdf "
        "voip_loss voip_mos_combine voip_mos_upload",
        True,
    ),
    (
        "voip-rrul",
        "all all_scaled all_scaled_delivery bar_combine bar_totals box_combine box_download box_ping box_ping_combine "
        "box_totals box_upload cdf_combine download download_scaled ellipsis ellipsis_combine ellipsis_combine_both "
        "ellipsis_down ellipsis_sum icmp_cdf icmp_combine ping ping_cdf ping_delay ping_scaled qq_download qq_icmp qq_upload "
        "tcp_delivery_rate tcp_delivery_with_rtt totals totals_bandwidth totals_combine totals_loss totals_scaled upload "
        "upload_scaled voip_bitrate voip_box_delay_loss voip_delay voip_delay_box voip_delay_cdf voip_delay_loss "
        "voip_induced_delay voip_induced_delay_box voip_induced_delay_cdf voip_loss voip_mos_combine voip_mos_upload",
        True,
    ),
)


def _table() -> dict[str, tuple[str, ...]]:
    return {test: (*plots.split(), *(SOCKETS if sockets else ())) for tests, plots, sockets in _ROWS for test in tests.split()}


TESTS = _table()
