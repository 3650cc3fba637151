# SPDX-License-Identifier: MIT OR Apache-2.0
"""The module on the newest kernel of Debian (test_module_builds.py builds it for all kernels)."""

from __future__ import annotations

import pytest
from krx import Link
from ktrxer.lab.pytest_plugin import in_device
from ktx_raw import Ear
from module_help import MODULE, module, wire
from test_module_rx import test_the_four_operations as _the_four_operations
from test_module_tx import frames_times_and_trains

__all__ = ["module", "wire"]


@in_device("pc", kernel="7.3", modules=MODULE, slow=("pc",))
def test_sending_on_7_3(wire: Ear) -> None:
    frames_times_and_trains(wire)


@in_device("pc", kernel="7.3", modules=MODULE, slow=("pc",))
@pytest.mark.parametrize("version", [4, 6])
def test_receiving_on_7_3(link: Link, version: int) -> None:
    _the_four_operations(link, version)
