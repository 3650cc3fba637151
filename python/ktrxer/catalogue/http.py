# SPDX-License-Identifier: MIT OR Apache-2.0
"""Loading web pages, alone or beside a load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ktrxer.catalogue import background
from ktrxer.catalogue.recipe import MS, Panel, Plan, Setting, Test, combine, parameter, run

LEAST_NS = 50 * MS  # from the beginning of one fetch to the next
SERIES = ("HTTP latency*",)
PANELS = (Panel("http_delay", "Time to load a page", SERIES), Panel("http_delay_cdf", "The same as CDF", SERIES, "cdf"))


@dataclass(frozen=True)
class Parameters:
    urls: tuple[str, ...] = parameter((), "pages to load, one after another; by default the first page of the far end", most=100)
    load: Literal["none", "up", "down", "rrul"] = parameter("none", background.LOAD)


def plan(setting: Setting, p: Parameters) -> Plan:
    return combine(
        run("http", "HTTP latency", pages=p.urls, interval_ns=max(LEAST_NS, setting.sample_interval_ns)),
        background.plan(setting, p.load),
        plots=("http_delay", "http_delay_cdf", *(("totals", "ping") if p.load != "none" else ())),
        panels=PANELS,
    )


TEST = Test("http", "Loading web pages again and again", plan, Parameters)
