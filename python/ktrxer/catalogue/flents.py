# SPDX-License-Identifier: MIT OR Apache-2.0
"""Parameters of Flent's tests that are settings of every test here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import zip_longest

from ktrxer.catalogue.recipe import PlanError

CC = "tcp_cong_control"  # of all tests with TCP: --cc
PINGS, MARKS = "ping_hosts", "ping_markings"  # --ping-host
SETTINGS = (CC, PINGS, MARKS)


def congestion_controls(given: str, values: Mapping[str, str]) -> list[str]:
    """Those of uploads and of downloads, by --cc or by Flent's parameter. Empty: the host's own."""
    named = values.get(CC, "")
    if given and named:
        raise PlanError(f"--cc and the parameter {CC} are the same setting: give one of them")
    text = given or named
    ccs = text.split(",") if text else ["", ""]
    if len(ccs) > 2 or (text and not all(ccs)):
        raise PlanError(f"--cc {text}: one name, or two with a comma between")
    return ccs


def ping_hosts(values: Mapping[str, str]) -> list[str]:
    """Flent's hosts to ping, each with its mark: a name, or a number that is the whole byte with DSCP and ECN (RFC 3168, section 5)."""
    hosts, marks = ([one.strip() for one in values.get(name, "").split(",")] for name in (PINGS, MARKS))
    made = []
    for host, mark in zip_longest(hosts, marks, fillvalue=""):
        if number := re.fullmatch(r"0x[0-9a-fA-F]{1,2}|[0-9]{1,3}", mark):
            whole = int(number[0], 16 if "x" in number[0] else 10)
            if whole > 255 or whole & 3 == 3:
                raise PlanError(f"{MARKS}: {mark} is no mark of a probe; there are names, and numbers to 254 whose ECN is not CE")
            mark = f"{whole >> 2 or ''}" + ("", ",ect1", ",ect0")[whole & 3]
        if host:
            made.append(host + ("," + mark if mark else ""))
    return made
