# SPDX-License-Identifier: MIT OR Apache-2.0
"""All names of the catalogue: each is a recipe (a file beside this one) with parameters. `ktrxer tests` lists them without importing a
recipe. docs/reference/catalogue.md is made from this table."""

from __future__ import annotations

from typing import NamedTuple

HOSTS_MOST = 64

FAIR = "several hosts"
Words = dict[str, str]


class Entry(NamedTuple):
    family: str
    recipe: str  # the module
    summary: str
    given: Words = {}  # noqa: RUF012 - never changed
    hosts: tuple[int, int] = (1, 1)  # the least and the largest number of far ends
    differs: str = ""  # from Flent's test of this name


def _list(*values: object) -> str:
    return ",".join(str(value) for value in values)


BE4 = {"labels": "BE,BE2,BE3,BE4", "markings": "BE"}
BE_PROBES = {"ping_labels": "BE1,BE2,BE3", "ping_markings": "BE"}
CS = ("CS0_BE", "CS1_BK", "CS2", "CS3", "CS4", "CS5", "CS6", "CS7")


def _against(other: str, label: str) -> Entry:
    """Cubic and another one, two flows of each in each direction."""
    labels = _list("Cubic BE", f"{label} BE", "Cubic CS1", f"{label} CS1")
    probes = {"ping_labels": "BE,CS1,CS6", "ping_markings": "BE,CS1,CS6"}
    given = {"labels": labels, "markings": "BE,BE,CS1,CS1", "cc_algos": f"cubic,{other}", **probes}
    return Entry("congestion control", "rrul", f"RRUL with cubic against {other}, in two classes", given)


def _four(other: str) -> Entry:
    given = {"labels": f"RENO,WESTWOOD,CUBIC,{other.upper()}", "markings": "", "cc_algos": f"reno,westwood,cubic,{other}"}
    return Entry("congestion control", "rrul", f"RRUL with reno, westwood, cubic and {other}, a flow of each in each direction", given)


def _pair(first: str, second: str) -> Entry:
    both = f"{first},{second}"
    given = {"labels": both, "cc_algos": both, "starts": "1", "lengths": "length", "after": "1", "ping": "yes"}
    return Entry("congestion control", "tcp_steps", f"A TCP upload with {first} beside one with {second}, with pings", given)


def _square(summary: str, labels: str, ccs: str, lengths: str, starts: str, after: str = "0") -> Entry:
    return Entry("TCP", "tcp_steps", summary, {"labels": labels, "cc_algos": ccs, "starts": starts, "lengths": lengths, "after": after})


def _fair(summary: str, hosts: int | None, label: str, marks: str, first: int = 1, family: str = FAIR, **more: str) -> Entry:
    """`hosts`: exactly so many, with numbered labels; None: any number."""
    names = _list(*((f"{label}{n}" for n in range(first, first + hosts)) if hosts else [label]))
    pings = _list(*((f"ICMP{n}" for n in range(first, first + hosts)) if hosts else ["ICMP"]))
    given = {"labels": names, "ping_labels": pings, "markings": marks, **more}
    return Entry(family, "rtt_fair", summary, given, (hosts, hosts) if hosts else (1, HOSTS_MOST))


def _many(family: str, summary: str, up: int, down: int, numbers: str = "both", differs: str = "") -> Entry:
    given = {"upload_streams": str(up), "download_streams": str(down), "numbers": numbers, "ping_labels": BE_PROBES["ping_labels"]}
    return Entry(family, "rrul_be_nflows", summary, given, differs=differs)


TABLE: dict[str, Entry] = {
    # Realtime Response Under Load
    "rrul": Entry("RRUL", "rrul", "Four TCP flows up and four down in four classes, ICMP and UDP probes in three"),
    "rrul_be": Entry("RRUL", "rrul", "Four TCP flows up and four down, ICMP and UDP probes, all of them best effort", BE4 | BE_PROBES),
    "rrul_be_iperf": Entry("RRUL", "rrul_be_iperf", "rrul_be with uploads by iperf"),
    "rrul_be_nflows": Entry("RRUL", "rrul_be_nflows", "N TCP flows up and M down, ICMP and UDP probes, all of them best effort"),
    "rrul_var": Entry("RRUL", "rrul_var", "N TCP flows up and N down, each with a label, marking, congestion control and start"),
    "rrul_icmp": Entry("RRUL", "rrul", "rrul_be with ICMP probes alone", BE4 | {"ping_labels": ""}),
    "rrul_up": Entry("RRUL", "rrul", "rrul without downloads", {"directions": "up"}),
    "rrul_noclassification": Entry("RRUL", "rrul", "rrul with flows that are not marked, and probes that are", BE4),
    "rrul_cs8": Entry("RRUL", "rrul", "A TCP flow up, one down and a UDP probe for each class CS0 to CS7", {
        "labels": _list(*CS), "markings": _list(*(name[:3] for name in CS)),
        "ping_labels": _list(*CS), "ping_markings": _list(*(name[:3] for name in CS)),
    }),
    "rrul_prio": Entry("RRUL", "rrul", "rrul_be with probes that the queue pfifo_fast serves first",
        BE4 | {"ping_labels": "BE1", "ping_markings": "BE", "prio": "yes"}),
    "rrul_torrent": Entry("RRUL", "rrul_torrent", "Six yielding TCP flows and a normal one each way, ICMP and UDP probes in three classes"),
    "rrul_50_up": _many("RRUL", "50 TCP flows up and one down, best effort", 50, 1, "up"),
    "rrul_100_up": _many("RRUL", "100 TCP flows up and one down, best effort", 100, 1, "up"),
    "rrul_50_down": _many("RRUL", "50 TCP flows down and one up, best effort", 1, 50, "down"),
    "rrul46": Entry("RRUL", "rrul46", "RRUL with half of its flows over IPv4 and half over IPv6"),
    "rrul46compete": Entry("RRUL", "rrul46", "The same classes over IPv4 and IPv6, with uploads that begin one after another",
        {"compete": "yes"}),
    # Several hosts
    "rtt_fair": Entry(FAIR, "rtt_fair", "A TCP upload, a download and pings to each of 4 hosts, in two classes",
        {"labels": "BE1,BE2,BK1,BK2", "ping_labels": "ICMP1,ICMP2,ICMP3,ICMP4", "markings": "BE,BE,CS1,CS1"}, (4, 4)),
    "rtt_fair4be": _fair("A TCP upload, a download and pings to each of 4 hosts", 4, "BE", "BE"),
    "rtt_fair6be": _fair("A TCP upload, a download and pings to each of 6 hosts", 6, "BE", "BE"),
    "rtt_fair_up": _fair("A TCP upload and pings to each of 4 hosts", 4, "BE", "BE", data_directions="u"),
    "rtt_fair_var": _fair("A TCP upload, a download and pings to each of several hosts", None, "BE", "BE"),
    "rtt_fair_var_up": _fair("A TCP upload and pings to each of several hosts", None, "BE", "BE", data_directions="u"),
    "rtt_fair_var_down": _fair("A TCP download and pings to each of several hosts", None, "BE", "BE", data_directions="d"),
    "rtt_fair_var_mixed": _fair("TCP flows up, down or both (data_directions), and pings, to each of several hosts", None, "BE", "BE"),
    # TCP
    "tcp_1up": Entry("TCP", "tcp_bidirectional", "One TCP upload, with pings", {"directions": "up"}),
    "tcp_1down": Entry("TCP", "tcp_bidirectional", "One TCP download, with pings", {"directions": "down"}),
    "tcp_1up_noping": Entry("TCP", "tcp_bidirectional", "One TCP upload, no pings, no idle phases", {"directions": "up", "ping": "no"}),
    **{f"tcp_{n}up": Entry("TCP", "tcp_nup", f"{n} TCP uploads, with pings", {"upload_streams": str(n)}) for n in (2, 4, 6, 8, 12, 50)},
    **{f"tcp_{n}down": Entry("TCP", "tcp_ndown", f"{n} TCP downloads, with pings", {"download_streams": str(n)}) for n in (2, 4, 6, 8, 12)},
    "tcp_nup": Entry("TCP", "tcp_nup", "N TCP uploads, with pings"),
    "tcp_ndown": Entry("TCP", "tcp_ndown", "N TCP downloads, with pings"),
    "tcp_upload": Entry("TCP", "tcp_bidirectional", "One TCP upload, with pings before, during and after", {"directions": "up"}),
    "tcp_download": Entry("TCP", "tcp_bidirectional", "One TCP download, with pings before, during and after", {"directions": "down"}),
    "tcp_bidirectional": Entry("TCP", "tcp_bidirectional", "One TCP upload and one download at the same time, with pings"),
    "tcp_2up_delay": Entry("TCP", "tcp_steps", "Two TCP uploads, the second of which begins later"),
    "tcp_2up_square": _square("A TCP upload with cubic, beside it shorter ones with cubic, reno and westwood in turn",
        "cubic,cubic 2,reno,westwood", "cubic,cubic,reno,westwood", "length,delay,delay,delay", "0,1,3,5"),
    "tcp_2up_square_westwood": _square("A TCP upload with westwood, beside it shorter ones with cubic, reno and westwood in turn",
        "westwood baseline,cubic 2,reno,westwood", "westwood,cubic,reno,westwood", "length,delay,delay,delay", "0,1,3,5"),
    "tcp_4up_squarewave": _square("Four TCP uploads with bbr and cubic that begin one after another",
        "bbr 1,cubic 2,cubic 3,bbr 4", "bbr,cubic,cubic,bbr", "length", "0,1,5,3", "1"),
    "tcp_upload_prio": Entry("TCP", "tcp_steps", "Two TCP uploads, and probes that the queue pfifo_fast serves first",
        {"labels": "upload,upload2", "starts": "1", "lengths": "length", "after": "1", "ping": "prio"}),
    "tcp_upload_1000": _many("TCP", "1000 TCP uploads, best effort, with ICMP and UDP probes", 1000, 0),
    # Congestion control against congestion control
    "cubic_bbr": _against("bbr", "BBR"),
    "cubic_cdg": _against("cdg", "CDG"),
    "cubic_dctcp": _against("dctcp", "dctcp"),
    "cubic_ledbat": _against("ledbat", "Ledbat"),
    "cubic_reno": _against("reno", "Reno"),
    "cubic_westwood": _against("westwood", "Westwood"),
    "cubic_ledbat_1": _pair("cubic", "ledbat"),
    "ledbat_cubic_1": _pair("ledbat", "cubic"),
    **{f"reno_cubic_westwood_{other}": _four(other) for other in ("cdg", "ledbat", "lp")},
    # Imitations of other tests
    "cisco_5tcpup": _fair("A TCP upload and pings to each of 5 hosts", 5, "BE", "BE", 0, "imitations", data_directions="u"),
    "cisco_5tcpup_2udpflood": _fair("A TCP upload and pings to each of 5 hosts, and UDP at 6 Mbit/s to the first one", 5, "BE", "BE", 0,
        "imitations", data_directions="u", udp_bandwidth="6M"),
    "dslreports_8dn": _many("imitations", "8 TCP downloads, best effort, with ICMP and UDP probes", 0, 8,
        differs="the probes are UDP, not requests over TCP"),
    # Applications
    "http": Entry("HTTP", "http", "Loading web pages again and again"),
    "http-1up": Entry("HTTP", "http", "Loading web pages beside a TCP upload", {"load": "up"}),
    "http-1down": Entry("HTTP", "http", "Loading web pages beside a TCP download", {"load": "down"}),
    "http-rrul": Entry("HTTP", "http", "Loading web pages beside the flows and probes of rrul_be", {"load": "rrul"}),
    "dashtest": Entry("HTTP", "dash", "A video in segments",
        differs="the video is dash_url, not a page on a host of Flent's author, and no browser plays it"),
    "voip": Entry("VoIP", "voip", "A call of G.711 size in both directions, rated by the E-model"),
    "voip-1up": Entry("VoIP", "voip", "A call beside a TCP upload", {"load": "up"}),
    "voip-rrul": Entry("VoIP", "voip", "A call beside the flows and probes of rrul_be", {"load": "rrul"}),
    # UDP and delay
    "udp_flood": Entry("UDP", "udp_flood", "A UDP flow up at a constant rate, with pings"),
    "udp_flood_var_up": Entry("UDP", "udp_flood", "A UDP flow up and pings to each of several hosts", {"by_host": "yes"}, (1, HOSTS_MOST)),
    "udp_flood_var_up_stagger": Entry("UDP", "udp_flood", "UDP flows up to several hosts that begin one after another, with pings",
        {"by_host": "yes", "stagger": "yes"}, (1, HOSTS_MOST)),
    "bursts": Entry("UDP", "bursts", "Bursts of UDP with idle time between them, ICMP and UDP probes in three classes",
        differs="a burst has 8 flows of together 100 Mbit/s, not 1000 ports as fast as possible"),
    "bursts_11e": Entry("UDP", "bursts", "Bursts of UDP, and UDP probes in the four access categories of 802.11e",
        {"ping_labels": "VO,BK,VI,BE", "ping_markings": "CS7,CS1,CS5,CS0", "icmp": "no"}, differs="as bursts"),
    "ping": Entry("ping", "ping", "ICMP and UDP round trips on an idle path"),
    # Other sources
    "qdisc-stats": Entry("other sources", "qdisc_stats", "The queues of a device: backlog, drops, marks, delay"),
    "command-output": Entry("other sources", "command_output", "A number that a command prints, again and again"),
    "mqtt_read": Entry("other sources", "power", "Values of an MQTT topic", {"mqtt_series": "mqtt_data", "unit": ""}),
    "power_usage": Entry("other sources", "power", "Power by a meter's MQTT messages and by a command",
        differs="the test puts no load on the processors: a command of `ktrxer batch` can (stress-ng)"),
    "iterated_bidirectional": Entry("other sources", "iterated", "A TCP upload and a download at the same time, several times, with pings",
        differs="the test works; in Flent 2.3.0 its runner gets no command"),
    # Tests of ktrxer alone
    "dash": Entry("of ktrxer alone", "dash", "A video in segments, alone or beside a load"),
    "l4s": Entry("of ktrxer alone", "l4s", "L4S and classic TCP flows side by side, probes of both kinds, marks counted at the far end"),
}  # fmt: skip

# Tests of Flent that have no recipe, and why.
EXPLAINED = {
    "sctp_vs_tcp": "the test is broken in Flent 2.3.0 (its netperf runner does not accept SCTP_STREAM), and no runner sends SCTP",
    "cpu_stress": "the test loads the processors and measures no network: a command of `ktrxer batch` runs stress-ng beside any test, "
    "and each run records the load of the processors",
}
