# SPDX-License-Identifier: MIT OR Apache-2.0
"""A release: the same version everywhere, and a recipe for OpenWrt that names files of this tree."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.search(r"^\s*version: '([^']+)'", (ROOT / "meson.build").read_text(), re.M)
assert VERSION

# The rules of OpenWrt that a recipe uses: evaluating a definition prints it.
RULES = {
    "rules.mk": "INCLUDE_DIR := $(TOPDIR)/include\nPKG_BUILD_DIR = /build\nPKG_INSTALL_DIR = /install\nINSTALL_DIR = install-dir\nINSTALL_BIN = install-bin\n"
    "INSTALL_CONF = install-conf\n",
    "include/kernel.mk": "KERNEL_MAKE = kernel-make\nAutoProbe = probes $(1)\ndefine KernelPackage\n$$(info $$(call KernelPackage/$(1)))\nendef\n",
    "include/package.mk": "define BuildPackage\n$$(info $$(call Package/$(1)))$$(info $$(call Package/$(1)/install,/root))"
    "$$(info $$(call Build/Compile))\nendef\n$(info source $(PKG_SOURCE) $(PKG_HASH))\n",
    "include/meson.mk": "Build/Compile/Meson = compile-meson\n",
}


@pytest.fixture
def openwrt(tmp_path: Path) -> Path:
    for name, text in RULES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_openwrt_s_recipe_is_read(openwrt: Path) -> None:
    recipe = ROOT / "packaging" / "openwrt" / "Makefile"
    done = subprocess.run(["make", "-n", "-f", recipe, f"TOPDIR={openwrt}", "--warn-undefined-variables", "nothing"], capture_output=True, text=True)
    said = done.stdout
    assert "No rule to make target 'nothing'" in done.stderr and "undefined variable" not in done.stderr, done.stderr
    assert f"source ktrxer-{VERSION.group(1)}.tar.gz skip" in said
    assert "install-bin /install/usr/bin/ktrxer /root/usr/bin/" in said
    assert "install-conf /build/packaging/openwrt/ktrxer.config /root/etc/config/ktrxer" in said and "AUTOLOAD:=probes ktrxer" in said
    assert "FILES:=/build/module/ktrxer.ko" in said and 'kernel-make M="/build/module" modules' in said and "compile-meson" in said
    options = set(re.findall(r"^option\('(\w+)'", (ROOT / "meson_options.txt").read_text(), re.M)) | {"default_library"}
    assert set(re.findall(r"-D(\w+)=", recipe.read_text())) <= options
    assert (ROOT / "module" / "Kbuild").exists()


def test_a_build_that_is_missing_or_unknown_is_named(tmp_path: Path) -> None:
    for build, words in ((tmp_path / "mips", "`make static cross`"), (tmp_path / "vax", "there is no cross/vax.ini")):
        build.mkdir()
        done = subprocess.run([ROOT / "scripts" / "release", "--out", tmp_path / "out", "--pages", tmp_path, build], capture_output=True, text=True)
        assert done.returncode == 1 and words in done.stderr, done.stderr
