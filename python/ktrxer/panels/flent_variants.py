# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plots that are another plot in some of Flent's tests than in the others, and the plots of a test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ktrxer.panels import flent
from ktrxer.panels.flent import BOX_MEANS, COMPUTED, DELAY, DOWN, LOAD, MEANS, PING_AVG, TOTALS, UP, VOICE, each, flows
from ktrxer.panels.spec import Pick, Spec

SPECS = dict(flent.SPECS)


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _whole(*names: str) -> dict[str, Spec]:
    return {name: replace(SPECS[name], part="whole") for name in names}


def _both(name: str, picks: tuple[Pick, ...], **more: Any) -> dict[str, Spec]:
    """The plot as boxes and as bars."""
    return {
        f"box{name}": replace(SPECS[f"box{name}"], picks=picks, **more),
        f"bar{name}": replace(SPECS[f"bar{name}"], picks=picks, **more),
    }


def _picks(*names: str, picks: tuple[Pick, ...]) -> dict[str, Spec]:
    return {name: replace(SPECS[name], picks=picks) for name in names}


_FLOWS_UP = _names("tcp_nup tcp_2up tcp_4up tcp_6up tcp_8up tcp_12up tcp_50up")
_FLOWS_DOWN = _names("tcp_ndown tcp_2down tcp_4down tcp_6down tcp_8down tcp_12down")
_ONE = _names("tcp_1up tcp_1down tcp_1up_noping tcp_upload tcp_download tcp_bidirectional")
_PLAIN = Pick("Ping (ms) ICMP", "Ping")
_RIGHT = replace(_PLAIN, axis=2)
_TCP_ONE = (Pick("TCP download", "Download"), Pick("TCP upload", "Upload"), _RIGHT)
_ALL_FLOWS = (Pick("TCP *"),)  # named after their congestion control
_ONE_RIGHT = Pick(PING_AVG, "Ping", axis=2)
_TORRENT = (Pick("TCP download Torrent sum", "Download", smooth=10), Pick("TCP upload Torrent sum", "Upload", smooth=10))
_SCTP = (Pick("Download sum", "Download", smooth=10), Pick("Upload sum", "Upload", smooth=10), replace(TOTALS[2]))
_CALL = Pick("VoIP::delay", "Delay that queues add", axis=2, reduce="mean_span")


def _of_flows(way: str) -> dict[str, Spec]:
    """The plots of the tests with N flows in one direction."""
    total, parts = Pick(f"TCP {way} sum", "Sum"), (Pick(f"TCP {way}::*"), Pick(f"TCP {way} avg", "mean"))
    return {
        "totals": replace(SPECS["totals"], picks=(total, _RIGHT)),
        "box_totals": replace(SPECS["box_totals"], picks=(total, _RIGHT), part=LOAD),
        "box_totals_combine": replace(SPECS["box_totals"], picks=(total, _RIGHT), part=LOAD, combine="each"),
        "box_ping_combine": replace(SPECS["box_ping_combine"], picks=(_PLAIN,)),
        **_both("_combine", parts, y2="", part="whole"),
    }


# Plots of a name that are another plot in some tests: the tests, and what differs.
VARIANTS: tuple[tuple[frozenset[str], dict[str, Spec]], ...] = (
    (_FLOWS_UP, _of_flows("upload")),
    (_FLOWS_DOWN, _of_flows("download")),
    (
        _ONE,
        {
            "totals": replace(SPECS["totals"], picks=_TCP_ONE),
            "box_totals": replace(SPECS["box_totals"], picks=_TCP_ONE),
            "totals_with_tcp_rtt": replace(
                SPECS["totals"], summary="throughput, delay, and TCP's round-trip times", picks=(*_TCP_ONE, flows("tcp_rtt", axis=2))
            ),
            "box_ping_combine": replace(SPECS["box_ping_combine"], picks=(_PLAIN,)),
        },
    ),
    (
        _names("tcp_1up tcp_1down"),
        {
            "box_totals": replace(SPECS["box_totals"], picks=_TCP_ONE, part=LOAD),
            "bar_totals": replace(SPECS["bar_totals"], picks=_TCP_ONE, part=LOAD),
            "box_totals_combine": replace(SPECS["box_totals"], picks=_TCP_ONE, part=LOAD, combine="each"),
            "bar_totals_combine": replace(SPECS["bar_totals"], picks=_TCP_ONE, part=LOAD, combine="each"),
        },
    ),
    (
        _names("tcp_upload_prio"),
        _picks(
            "totals",
            "box_totals",
            picks=(
                Pick("TCP upload"),
                Pick("TCP upload2"),
                Pick("TCP upload total", smooth=10),
                Pick("Ping (ms) ICMP*", axis=2),
                TOTALS[2],
            ),
        ),
    ),
    (
        _names("tcp_2up_delay tcp_2up_square tcp_2up_square_westwood tcp_4up_squarewave"),
        _picks("totals", picks=_ALL_FLOWS) | {"box_combine": replace(BOX_MEANS, picks=_ALL_FLOWS, y2="", part="from load", by="series")},
    ),
    (_names("cubic_ledbat_1 ledbat_cubic_1"), _picks("totals", picks=(*_ALL_FLOWS, _RIGHT))),
    (
        _names("http-1up http-1down http-rrul"),
        {
            "bar_combine": Spec(
                "bar", "mean time of a page, of the runs", (Pick("HTTP latency"),), "Time of a page", combine="each", by="both"
            ),
            "cdf_combine": Spec(
                "cdf", "distribution of the runs' mean times of a page", (Pick("HTTP latency"),), "Time of a page", combine="each"
            ),
        },
    ),
    (
        _names("http-1up http-1down"),
        {
            "box_combine": replace(SPECS["box_total"], summary="mean throughput, and mean time of a page, of the runs", combine="each"),
            "totals": Spec("stack", "throughput, and time of each page", panels=("bandwidth", "http_delay")),
        },
    ),
    (_names("http"), _whole("http_delay_cdf")),
    (_names("ping"), _whole("ping_cdf")),
    (
        _names("voip"),
        _whole(
            "voip_delay_cdf",
            "voip_delay_box",
            "voip_induced_delay_cdf",
            "voip_induced_delay_box",
            "voip_box_delay_loss",
            "voip_mos_combine",
            "voip_mos_upload",
        ),
    ),
    (
        _names("voip-1up voip-rrul"),
        {"cdf_combine": replace(SPECS["cdf_combine"], picks=(replace(_CALL, label="One-way delay", axis=1, reduce="span"),))},
    ),
    (
        _names("voip-1up"),
        {
            "totals": Spec("stack", "throughput, and delay of a call", panels=("bandwidth", "voip_delay")),
            "box_combine": replace(BOX_MEANS, picks=(Pick("TCP upload", "Upload"), _CALL)),
        },
    ),
    (
        _names("voip-rrul"),
        {
            "ping_delay": replace(SPECS["ping_delay"], picks=(Pick(PING_AVG, "Ping"), *VOICE)),
            "box_combine": replace(BOX_MEANS, picks=(*MEANS[:2], _CALL)),
            "totals_loss": Spec("stack", "throughput, delay and loss of a call", panels=("totals", "ping_delay", "voip_loss")),
        },
    ),
    (
        _names("rrul rrul46 rrul_up"),
        {
            name: replace(SPECS[name], picks=(Pick(pattern, exclude=("*sum",)),), by="series")
            for way, pattern in (("up", "TCP upload *"), ("down", "TCP download *"))
            for name in (f"box_combine_{way}", f"bar_combine_{way}")
        },
    ),
    (
        _names("rrul_torrent"),
        {
            **_picks(
                "totals",
                "totals_scaled",
                "box_totals",
                picks=(
                    _TORRENT[0],
                    Pick("TCP download BE", smooth=10),
                    _TORRENT[1],
                    Pick("TCP upload BE", smooth=10),
                    TOTALS[2],
                ),
            ),
            **_picks("totals_bandwidth", picks=_TORRENT),
            **_picks("download", "download_scaled", "box_download", picks=each(DOWN, "TCP download Torrent avg")),
            **_picks("upload", "upload_scaled", "box_upload", picks=each(UP, "TCP upload Torrent avg")),
            "box_combine": replace(BOX_MEANS, picks=(*(replace(one, smooth=0) for one in _TORRENT), MEANS[2])),
        },
    ),
    (
        _names("sctp_vs_tcp"),
        {
            **_picks("totals", "totals_scaled", "box_totals", picks=_SCTP),
            **{
                f"{head}{way}{tail}": replace(
                    SPECS[f"{head}{way}{tail}"],
                    picks=(*SPECS[way].picks, Pick(f"SCTP {way}**", exclude=COMPUTED), Pick(f"SCTP {way} avg", "mean of SCTP", smooth=10)),
                )
                for way in ("download", "upload")
                for head, tail in (("", ""), ("", "_scaled"), ("box_", ""))
            },
            **_picks("qq_download", picks=(Pick("Download sum"),)),
            **_picks("qq_upload", picks=(Pick("Upload sum"),)),
        },
    ),
    (
        _names("cisco_5tcpup cisco_5tcpup_2udpflood"),
        _picks("icmp_cdf", picks=(Pick("Ping (ms) ICMP"),)),
    ),
    (_names("rrul_icmp"), _picks("ping", "ping_scaled", "ping_cdf", "box_ping", picks=(_PLAIN,))),
    (_names("rrul_prio"), _picks("qq_icmp", picks=(Pick("Ping (ms) ICMP"),))),
    (
        _names("udp_flood udp_flood_var_up udp_flood_var_up_stagger"),
        {
            "totals": Spec(
                "box",
                "mean rates and delay of the runs",
                (Pick("UDP upload"), Pick("UDP upload sum", "Upload"), _ONE_RIGHT),
                "",
                DELAY,
                combine="each",
            ),
            "upload": replace(SPECS["upload_bar"], kind="box"),
            "ping_cdf": SPECS["icmp_cdf"],
        },
    ),
    (
        _names("udp_flood"),
        {"totals": Spec("box", "mean rate and delay of the runs", (Pick("UDP upload"), _RIGHT), "", DELAY, combine="each")},
    ),
)

# Plots that only some tests have.
for _, _different in VARIANTS:
    SPECS = _different | SPECS


def specs_of(test: str) -> dict[str, Spec]:
    """All plots, as they are in this test."""
    made = dict(SPECS)
    for tests, different in VARIANTS:
        if test in tests:
            made |= different
    return made
