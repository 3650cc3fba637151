# SPDX-License-Identifier: MIT OR Apache-2.0
"""The upload and the download at once."""

from __future__ import annotations

from ktrxer.catalogue import tcp_download, tcp_upload
from ktrxer.catalogue.recipe import NoParameters, Plan, Setting, Test, combine


def plan(setting: Setting, p: NoParameters) -> Plan:
    return combine(tcp_download.plan(setting, p), tcp_upload.plan(setting, p), plots=("totals", "ping", "ping_cdf", "box_totals"))


TEST = Test("tcp_bidirectional", "One TCP upload and one download at the same time, with pings", plan)
