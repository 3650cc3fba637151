# SPDX-License-Identifier: MIT OR Apache-2.0
"""The plots of Flent's tests under their names, as specifications.

Flent lists the series of each test's plots one by one. Here one specification with patterns serves all tests that have a plot of that name:
it selects the same series in each of them. Where the plot of a test is another one, flent_variants.py has it.
tests/python/test_panels_flent.py compares both with a table of names, and with the real Flent where it is installed."""

from __future__ import annotations

from dataclasses import replace

from ktrxer.panels.spec import Part, Pick, Spec

COMPUTED = ("*sum", "*avg", "*fairness", "*totals", "*total")
PING, ICMP, PING_AVG = "Ping (ms)**", "Ping (ms)**ICMP**", "Ping (ms) avg"
UP, DOWN = "TCP upload**", "TCP download**"
UP_SUM, DOWN_SUM = "TCP upload sum", "TCP download sum"
EXTRA = ("*(extra)",)  # probes to further hosts
SCALED = (5.0, 95.0)
LOAD: Part = "load"
ADDED = "mean delay that queues add"
DELAY = "Delay"


def each(pattern: str, average: str, reduce: str = "mean") -> tuple[Pick, ...]:
    """Each series of a kind, and their mean, smoothed."""
    return (Pick(pattern, reduce=reduce, exclude=COMPUTED), Pick(average, "mean", smooth=10, reduce=reduce))


def flows(column: str, label: str = "", axis: int = 1, reduce: str = "mean") -> Pick:
    return Pick("TCP**", label, column, 2 if axis == 2 else 1, reduce, exclude=("*fairness*",))


_SUMS = (Pick(DOWN_SUM, "Download", smooth=10), Pick(UP_SUM, "Upload", smooth=10))
TOTALS = (*_SUMS, Pick(PING_AVG, "Ping", axis=2, smooth=10))
MEANS = (
    Pick(DOWN_SUM, "Download"),
    Pick(UP_SUM, "Upload"),
    Pick(PING_AVG, "Delay that queues add", axis=2, reduce="mean_span"),
)
_PING = each(PING, PING_AVG)
_UP, _DOWN = each(UP, "TCP upload avg"), each(DOWN, "TCP download avg")
_ICMP = (Pick(ICMP, exclude=EXTRA),)
VOICE = (Pick("VoIP::delay", "One-way delay"), Pick("VoIP::jitter", "Jitter"))
_INDUCED = (Pick("VoIP::induced_delay", "One-way delay above its minimum"),)
_HTTP = (Pick("HTTP latency**", reduce="raw_mean"),)
_RTT = (flows("tcp_rtt", reduce="raw_mean"),)
_WITH_RTT = (flows("tcp_delivery_rate"), flows("tcp_rtt", axis=2), Pick("Ping (ms) *", axis=2))


BOX_MEANS = Spec("box", "mean throughput and the delay that queues add, of the runs", MEANS, "Throughput", ADDED, LOAD, combine="each")
_BOX_RATES = Spec("box", "mean throughput of the runs", MEANS[:2], "Throughput", part=LOAD, combine="each")

SPECS: dict[str, Spec] = {
    # ------------------------------------------------------------------------------------------------ over time, stacked
    "all": Spec("stack", "throughput by flow down and up, and delay", panels=("download", "upload", "ping")),
    "all_scaled": Spec("stack", "the same without outliers", panels=("download_scaled", "upload_scaled", "ping_scaled")),
    "all_scaled_delivery": Spec(
        "stack", "throughput down, TCP's delivery rates up, and delay", panels=("download_scaled", "tcp_delivery_rate", "ping_scaled")
    ),
    "download": Spec("series", "throughput by flow down", _DOWN),
    "upload": Spec("series", "throughput by flow up", _UP),
    "ping": Spec("series", "delay of the probes", _PING, DELAY),
    "ping_smooth": Spec("series", "delay of the probes, smoothed", (*_ICMP, Pick(ICMP, "smoothed", smooth=5, exclude=EXTRA)), DELAY),
    "totals": Spec("series", "sums of throughput, and mean delay", TOTALS, y2=DELAY),
    "totals_bandwidth": Spec("series", "sums of throughput", _SUMS),
    "totals_combine": Spec("series", "sums of throughput and mean delay, averaged over the runs", TOTALS, y2=DELAY, combine="averaged"),
    "totals_delay": Spec("stack", "sums of throughput, and delay of web pages", panels=("totals_bandwidth", "ping_delay")),
    "ping_delay": Spec("series", "mean delay, and delay of web pages", (Pick(PING_AVG, "Ping"), Pick("HTTP latency**")), DELAY),
    "icmp_combine": Spec("series", "delay of ICMP probes, averaged over the runs", _ICMP, DELAY, combine="averaged"),
    "upload_with_ping": Spec("series", "throughput by flow up, and delay", (Pick("TCP upload::*"), Pick("Ping (ms) *", axis=2)), y2=DELAY),
    "upload_with_ping_and_tcp_rtt": Spec(
        "series",
        "throughput by flow up, delay, and TCP's round-trip times",
        (Pick("TCP upload::*"), Pick("Ping (ms) *", axis=2), flows("tcp_rtt", axis=2)),
        y2=DELAY,
    ),
    "download_average": Spec("series", "throughput down, and smoothed", (Pick("TCP download"), Pick("TCP download", "mean", smooth=5))),
    "bandwidth": Spec("series", "throughput", (Pick("TCP upload"), Pick("TCP download"))),
    "ping_hiprio": Spec(
        "series",
        "delay of ICMP probes of high priority",
        (Pick("Ping (ms) ICMP PRIO"), Pick("Ping (ms) ICMP PRIO", "mean", smooth=10)),
        DELAY,
    ),
    "totals_5s": Spec("series", "throughput by flow, smoothed over 5 s", (Pick("TCP *", smooth=25),)),
    # ---------------------------------------------------------------------------------------------------- distributions
    "ping_cdf": Spec("cdf", "distribution of the delay under load", _PING, DELAY, part=LOAD),
    "icmp_cdf": Spec("cdf", "distribution of the delay of ICMP probes under load", _ICMP, DELAY, part=LOAD),
    "ping_cdf_combine": Spec(
        "cdf", "distribution of the delay under load, all runs of a group together", _PING, DELAY, part=LOAD, combine="pooled"
    ),
    "cdf_combine": Spec(
        "cdf",
        "distribution of the delay that queues add, all runs of a group together",
        (Pick(PING_AVG, "Ping", reduce="span"),),
        ADDED,
        part=LOAD,
        combine="pooled",
    ),
    "box_ping": Spec("box", "delay as boxes", _PING, DELAY),
    "box_ping_combine": Spec("box", "mean delay of the runs as boxes", (Pick(PING_AVG, "Ping"),), DELAY, part=LOAD, combine="each"),
    "box_download": Spec("box", "throughput by flow down as boxes", _DOWN),
    "box_upload": Spec("box", "throughput by flow up as boxes", _UP),
    "upload_box": Spec(
        "box",
        "throughput by flow up under load as boxes",
        (Pick("TCP upload::*"), Pick("TCP upload avg", "mean")),
    ),
    "box_totals": Spec("box", "sums of throughput and mean delay as boxes", TOTALS, y2=DELAY),
    "bar_totals": Spec("bar", "sums of throughput and mean delay as bars", TOTALS, y2=DELAY),
    "qq_download": Spec("qq", "sums of throughput down of two runs, quantile against quantile", (Pick(DOWN_SUM),)),
    "qq_upload": Spec("qq", "sums of throughput up of two runs, quantile against quantile", (Pick(UP_SUM),)),
    "qq_icmp": Spec("qq", "delay of ICMP probes of two runs, quantile against quantile", _ICMP),
    # ------------------------------------------------------------------------------------------------- runs in groups
    "box_combine": BOX_MEANS,
    "bar_combine": replace(BOX_MEANS, kind="bar"),
    "box_combine_throughput": _BOX_RATES,
    "bar_combine_throughput": replace(_BOX_RATES, kind="bar"),
    "box_combine_up": Spec(
        "box", "mean throughput by flow up, of the runs", (Pick(UP, exclude=COMPUTED), Pick("TCP upload avg", "mean")), combine="each"
    ),
    "box_combine_down": Spec(
        "box", "mean throughput by flow down, of the runs", (Pick(DOWN, exclude=COMPUTED), Pick("TCP download avg", "mean")), combine="each"
    ),
    "bar_fairness": Spec(
        "bar",
        "Jain's fairness index of the flows, of the runs",
        (Pick("TCP upload fairness", "Upload"), Pick("TCP download fairness", "Download")),
        "Fairness index",
        part=LOAD,
        combine="each",
    ),
    # ------------------------------------------------------------------------------------- throughput against delay
    "ellipsis": Spec("ellipse", "throughput up against mean delay", (Pick(PING_AVG, "Ping"), Pick(UP_SUM, "Upload"))),
    "ellipsis_down": Spec("ellipse", "throughput down against mean delay", (Pick(PING_AVG, "Ping"), Pick(DOWN_SUM, "Download"))),
    "ellipsis_sum": Spec(
        "ellipse", "throughput of both directions against mean delay", (Pick(PING_AVG, "Ping"), Pick("TCP totals", "Both"))
    ),
    "ellipsis_combine": Spec(
        "ellipse",
        "mean throughput up of the runs against the delay that queues add",
        (Pick(PING_AVG, "Ping", axis=2, reduce="mean_span"), Pick(UP_SUM, "Upload")),
        ADDED,
        "Throughput",
        combine="each",
    ),
    "ellipsis_combine_both": Spec(
        "ellipse",
        "mean throughput of the runs against the delay that queues add",
        (Pick(PING_AVG, "Ping", axis=2, reduce="mean_span"), Pick(UP_SUM, "Upload"), Pick(DOWN_SUM, "Download")),
        ADDED,
        "Throughput",
        combine="each",
    ),
    # ------------------------------------------------------------------------------------------------ state of the sockets
    "tcp_cwnd": Spec("series", "congestion windows", (flows("tcp_cwnd"),), "Window"),
    "tcp_rtt": Spec("series", "TCP's round-trip times", (flows("tcp_rtt"),), DELAY),
    "tcp_rtt_cdf": Spec("cdf", "distribution of TCP's round-trip times", (flows("tcp_rtt"),), DELAY),
    "tcp_rtt_box_combine": Spec("box", "TCP's mean round-trip times of the runs", _RTT, DELAY, combine="each"),
    "tcp_rtt_bar_combine": Spec("bar", "TCP's mean round-trip times of the runs", _RTT, DELAY, combine="each"),
    "tcp_pacing": Spec(
        "series",
        "TCP's pacing and delivery rates, and BBR's estimate of the bandwidth",
        (flows("tcp_pacing_rate", "pacing rate"), flows("tcp_delivery_rate", "delivery rate"), flows("tcp_bbr_bw", "BBR's bandwidth")),
    ),
    "tcp_delivery_rate": Spec("series", "TCP's delivery rates up", (Pick("TCP upload **", column="tcp_delivery_rate", exclude=COMPUTED),)),
    "tcp_delivery_with_rtt": Spec("series", "TCP's delivery rates and round-trip times", _WITH_RTT, y2=DELAY),
    "tcp_delivery_with_ping": Spec("series", "TCP's delivery rates, and delay", (_WITH_RTT[0], _WITH_RTT[2]), y2=DELAY),
    # ----------------------------------------------------------------------------------------------------------- HTTP
    "http_delay": Spec("series", "time of each page", _HTTP, "Time of a page"),
    "http_delay_cdf": Spec("cdf", "distribution of the time of a page", _HTTP, "Time of a page", part=LOAD),
    "http_box_combine": Spec("box", "mean time of a page, of the runs", _HTTP, "Time of a page", combine="each"),
    "box_total": Spec(
        "box",
        "throughput, and time of a page, as boxes",
        (Pick("TCP download"), Pick("TCP upload"), Pick("HTTP latency", axis=2)),
        y2="Time of a page",
    ),
    # ----------------------------------------------------------------------------------------------------------- voice
    "voip_delay": Spec("series", "one-way delay and jitter of a call", VOICE, DELAY),
    "voip_delay_cdf": Spec("cdf", "distribution of one-way delay and jitter of a call", VOICE, DELAY, part=LOAD),
    "voip_delay_box": Spec("box", "one-way delay and jitter of a call as boxes", VOICE, DELAY, part=LOAD),
    "voip_induced_delay": Spec("series", "one-way delay of a call above its minimum", _INDUCED, DELAY),
    "voip_induced_delay_cdf": Spec("cdf", "distribution of the one-way delay of a call above its minimum", _INDUCED, DELAY, part=LOAD),
    "voip_induced_delay_box": Spec("box", "one-way delay of a call above its minimum as a box", _INDUCED, DELAY, part=LOAD),
    "voip_loss": Spec("series", "lost packets of a call", (Pick("VoIP::loss", "Lost"),), "Lost packets"),
    "voip_bitrate": Spec("series", "bit rate of a call", (Pick("VoIP::bitrate", "Bit rate"),)),
    "voip_delay_loss": Spec("stack", "delay and loss of a call", panels=("voip_delay", "voip_loss")),
    "voip_box_delay_loss": Spec(
        "box",
        "delay that queues add to a call, and its loss, of the runs",
        (Pick("VoIP::delay", "Delay", reduce="mean_span"), Pick("VoIP::loss", "Lost", axis=2, reduce="raw_seq_loss")),
        ADDED,
        "Share lost",
        LOAD,
        combine="each",
    ),
    "voip_mos_combine": Spec(
        "box", "mean opinion score of a call, of the runs", (Pick("VoIP", "MOS", reduce="mos"),), "MOS", part=LOAD, combine="each"
    ),
    "voip_mos_upload": Spec(
        "box",
        "mean opinion score of a call and throughput up, of the runs",
        (Pick("VoIP", "MOS", reduce="mos"), Pick("TCP upload sum", "Upload", axis=2), Pick("TCP upload", "Upload", axis=2)),
        "MOS",
        "Throughput",
        LOAD,
        combine="each",
    ),
    "totals_loss": Spec("stack", "throughput, delay and loss of a call", panels=("bandwidth", "voip_delay", "voip_loss")),
    "bar_upload": Spec("bar", "mean throughput up, of the runs", (Pick("TCP upload"),), "Throughput", part=LOAD, combine="each"),
    "bar_cdf": Spec("stack", "mean throughput up, and distribution of the delay", panels=("bar_upload", "cdf_combine"), side=True),
    # ------------------------------------------------------------------------------------------------------------ UDP
    "upload_bar": Spec(
        "bar", "mean rate by flow up, of the runs", (Pick("UDP upload**", exclude=COMPUTED), Pick("UDP upload avg", "mean")), combine="each"
    ),
    "totals_throughput": Spec("bar", "mean rate of all UDP flows up, of the runs", (Pick("UDP upload sum"),), combine="each"),
    "udp_tcp_combine": Spec(
        "bar", "mean rates of UDP and TCP flows up, of the runs", (Pick("UDP upload sum"), Pick("TCP upload sum", axis=2)), combine="each"
    ),
    # --------------------------------------------------------------------------------------------------- other sources
    "backlog": Spec(
        "series",
        "backlog of the queue",
        (Pick("**::backlog_pkts"), Pick("**::backlog_bytes", axis=2)),
        "Packets",
        "Bytes",
    ),
    "drops": Spec("series", "packets that the queue dropped and marked", (Pick("**::dropped"), Pick("**::ecn_mark")), "Packets"),
    "delay": Spec("series", "delay that the queue reports", (Pick("qdisc-stats::delay"), Pick("**: delay"), Pick("**: ldelay")), DELAY),
    "command-values": Spec("series", "values of a command", (Pick("command-values"),), "Value"),
    "mqtt_data": Spec("series", "values of an MQTT topic", (Pick("mqtt_data"),), "Value"),
    "cpu_runners": Spec("series", "processes that load the processors", (Pick("cpu_stressor"),), "Processes"),
    "power": Spec("series", "electric power", (Pick("ipmi_power"), Pick("mqtt_power")), "Watts"),
    "power_bar_combine": Spec(
        "bar",
        "electric power of the runs",
        (Pick("ipmi_power", "IPMI", part=LOAD), Pick("mqtt_power", "wall", reduce="raw_max")),
        "Watts",
        combine="each",
    ),
    "power_combine_ipmi": Spec(
        "line", "electric power (IPMI) over a parameter", (Pick("ipmi_power", "IPMI", part=LOAD),), "Watts", combine="each", by="both"
    ),
    "power_combine_wall": Spec(
        "line",
        "electric power (wall plug) over a parameter",
        (Pick("mqtt_power", "wall", reduce="raw_max"),),
        "Watts",
        combine="each",
        by="both",
    ),
    "power_combine": Spec("stack", "electric power over a parameter", panels=("power_combine_ipmi", "power_combine_wall"), share_x=False),
    "throughput": Spec("series", "throughput and bit rate of a video", (Pick("Dash", "throughput"), Pick("Dash::bitrate", "bit rate"))),
    "buffer": Spec("series", "buffer of a video", (Pick("Dash::buflen", "buffer"),), "Buffer"),
    "dash": Spec("stack", "throughput and buffer of a video", panels=("throughput", "buffer")),
    "box": Spec("box", "throughput of repeated transfers as boxes", (Pick("TCP download"), Pick("TCP upload"))),
    "timeseries": Spec("series", "throughput of repeated transfers", (Pick("TCP download"), Pick("TCP upload"))),
}

for _name in ("box_combine_up", "box_combine_down"):
    SPECS[f"bar{_name[3:]}"] = replace(SPECS[_name], kind="bar")
for _name in ("download", "upload", "ping", "totals"):
    SPECS[f"{_name}_scaled"] = replace(SPECS[_name], summary=f"{SPECS[_name].summary}, without outliers", scaling=SCALED)
