# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ktrxer lab setup`: the images that it prepares, and the archives whose index it reads again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from ktrxer_lab import device, image, stock, uml
from ktrxer_lab.errors import LabError
from ktrxer_lab.packages import Archive, host_architecture


def test_all_devices_with_their_own_kernels() -> None:
    found = stock.wanted([], None)
    assert found["uml"] == [uml.KERNEL] and found["router"] == ["6.1"] and set(found) == {*device.names(), "uml"}
    assert found["pc"] == list(device.load("pc").kernels)


def test_a_kernel_of_the_devices_that_have_it() -> None:
    assert stock.wanted([], "6.12") == {"pc": ["6.12"], "phone": ["6.12"], "uml": ["6.12"]}
    assert stock.wanted([], "7.3") == {"pc": ["7.3"], "uml": ["7.3"]}
    assert stock.wanted(["uml"], "6.1") == {"uml": ["6.1"]}


@pytest.mark.parametrize(
    ("names", "kernel", "words"),
    [
        ([], "2.4", r"--kernel 2\.4: no device has it; choose one of: 5\.10, 6\.1, 6\.12, "),
        (["uml"], "5.10", r"--kernel 5\.10: the device uml has 6\.1, 6\.12, 7\.3"),
        (["pc", "router"], "6.12", r"--kernel 6\.12: the device router has 6\.1"),
        (["um"], None, "no device 'um'; choose one of: pc, phone, router, uml"),
    ],
)
def test_what_does_not_exist(names: Sequence[str], kernel: str | None, words: str) -> None:
    with pytest.raises(LabError, match=words):
        stock.wanted(names, kernel)


def test_an_update_reads_the_archive_of_each_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    order = list[str]()
    monkeypatch.setattr(Archive, "update", lambda archive: order.append(f"{archive.suite} {archive.arch}"))
    monkeypatch.setattr(uml, "prepare", lambda kernel, _: order.append(f"uml {kernel}"))
    monkeypatch.setattr(image, "prepare", lambda one, kernel, *_: order.append(f"{one.name} {kernel}"))
    stock.prepare({"uml": ["7.3"]}, True, False, print)
    assert order == [f"trixie-backports {host_architecture()}", "uml 7.3"]
    order.clear()
    stock.prepare({"router": ["6.1"], "uml": ["6.12"]}, True, False, print)
    assert order == ["bookworm mipsel", f"bookworm-backports {host_architecture()}", "router 6.1", "uml 6.12"]
