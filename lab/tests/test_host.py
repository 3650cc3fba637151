# SPDX-License-Identifier: MIT OR Apache-2.0
"""Data that the lab reads: the host's mirror, a kernel's last messages, topologies, keys of images."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from ktrxer_lab import cache, console, device, kbuild, packages, places, topology, wiring
from ktrxer_lab.errors import LabError


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private /etc/apt."""
    monkeypatch.delenv("KTRXER_LAB_MIRROR", raising=False)
    folder = tmp_path / "apt"
    (folder / "sources.list.d").mkdir(parents=True)
    monkeypatch.setattr(packages, "Path", lambda path: folder if path == "/etc/apt" else Path(path))
    return folder


@pytest.mark.parametrize(
    ("file", "text", "mirror"),
    [
        ("sources.list", "deb http://deb.example/debian bookworm main\n", "http://deb.example/debian"),
        ("sources.list", "# deb http://no.example/ sid main\n deb [signed-by=/k arch=amd64] https://a.example/d trixie main\n", "https://a.example/d"),
        ("sources.list", "deb cdrom:[Debian]/ bookworm main\ndeb http://b.example/ubuntu jammy main\ndeb http://c.example/d stable main\n", "http://c.example/d"),
        ("sources.list.d/debian.sources", "Types: deb\nURIs: http://d.example/d\nSuites: bookworm bookworm-updates\nComponents: main\n", "http://d.example/d"),
        ("sources.list.d/x.sources", "URIs: http://e.example/u\nSuites: noble\n\nURIs: file:/srv/debian\nSuites: bookworm\n", "file:/srv/debian"),
    ],
)
def test_the_mirror_that_this_host_uses(apt: Path, file: str, text: str, mirror: str) -> None:
    (apt / file).write_text(text)
    assert packages.mirror() == mirror


@pytest.mark.parametrize("text", ["", "deb http://b.example/ubuntu jammy main\n", "deb\n", "\xff\xfe nonsense"])
def test_a_host_without_a_debian_mirror_is_told_what_to_do(apt: Path, text: str) -> None:
    (apt / "sources.list").write_text(text, encoding="latin-1")
    with pytest.raises(LabError, match="set KTRXER_LAB_MIRROR"):
        packages.mirror()


def test_a_named_mirror_comes_first(apt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (apt / "sources.list").write_text("deb http://deb.example/debian bookworm main\n")
    monkeypatch.setenv("KTRXER_LAB_MIRROR", "http://mine.example/debian")
    assert packages.mirror() == "http://mine.example/debian"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("[    1.0] all is well\n", None),
        ("", None),
        ("[    2.1] Kernel panic - not syncing: sysrq triggered crash\n", "Kernel panic - not syncing: sysrq triggered crash"),
        ("x\nBUG: unable to handle page fault\nKernel panic - not syncing: Fatal\n", "Kernel panic - not syncing: Fatal (first: BUG: unable to handle page fault)"),
        ("kernel BUG at mm/slab.c:1!\n", "kernel BUG at mm/slab.c:1!"),
        ("ktrxer-lab: no devtmpfs\n", "ktrxer-lab: no devtmpfs"),
    ],
)
def test_what_a_device_died_of(text: str, cause: str | None) -> None:
    assert console.death(text) == cause


def test_warnings_are_those_of_level_4_and_worse() -> None:
    log = ["<4>[    1.000000] warn", "<6>[    1.0] info", "<3>[    1.5] bare", "<12>[    2.0] of a program", "no level", "<28>[    3.0] x"]
    assert console.warnings(log) == ["warn", "bare", "of a program", "x"]


def test_devices_say_what_there_is() -> None:
    assert device.names() == ["pc", "phone", "router"]
    with pytest.raises(LabError, match=r"no kernel .2\.4. for the pc; choose one of: 5\.10, 6\.1, 6\.12"):
        device.load("pc").kernel("2.4")
    with pytest.raises(LabError, match=r"no device .\.\./pc."):
        device.load("../pc")


def test_every_node_of_the_topology_reaches_every_subnet() -> None:
    flent = topology.load("flent", {"leaf": "fq_codel limit 500"})
    for node in flent.nodes:
        here = {link.subnet for link in flent.links if node in link.ends}
        routed = {to.subnet for to, _, _ in flent.routes(node)}
        assert here | routed == {link.subnet for link in flent.links}
        assert not here & routed
    assert wiring.script(flent).count("handle 10: fq_codel limit 500") == 2


def test_a_setting_cannot_become_a_command() -> None:
    for wrong in ({"leaf": "pfifo; reboot"}, {"rate": "1mbit$(id)"}, {"delay": "1ms\nreboot"}):
        with pytest.raises(LabError, match="must be"):
            topology.load("flent", wrong)


def test_an_image_is_named_by_all_that_it_is_made_of() -> None:
    assert cache.digest("layer", ["a"]) == cache.digest("layer", ["a"])
    assert len({cache.digest(*inputs) for inputs in (("layer", ["a"]), ("layer", ["b"]), ("kernel", ["a"]), ("layer", "a"))}) == 4


def test_a_comment_in_the_code_of_images_rebuilds_nothing(tmp_path: Path) -> None:
    code = 'X = 1\n\nclass A:\n    """Text."""\n\n    def f(self):\n        """Text."""\n        return "text"\n'
    texts = [code, "# A comment.\n" + code.replace("Text.", "Other words."), code.replace('"text"', '"other"'), code.replace("X = 1", "X = 2")]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.py").write_text(text)
    first, reworded, *changed = (cache.syntax(tmp_path / f"{number}.py") for number in range(4))
    assert first == reworded and first not in changed


def test_what_is_damaged_in_the_cache_is_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRXER_LAB_CACHE", str(tmp_path))
    whole, archive, calls = b"a package", packages.Archive("bookworm", "amd64"), list[str]()
    fields = {"name": "x", "version": "1", "address": "", "file": "", "sha256": hashlib.sha256(whole).hexdigest(), "depends": ""}

    def update(self: packages.Archive) -> None:
        calls.append("update")
        (self.root / packages.INDEX).write_text(json.dumps({"x": fields}))

    def apt(self: packages.Archive, *command: str, cwd: Path) -> str:
        calls.append(command[2])
        (cwd / "x_1_amd64.deb").write_bytes(whole)
        return ""

    monkeypatch.setattr(packages.Archive, "update", update)
    monkeypatch.setattr(packages.Archive, "_apt", apt)
    (archive.root / "cache/archives/partial").mkdir(parents=True)
    (archive.root / packages.INDEX).write_text('{"x": {"name"')
    for damage in ("", "damaged", None):
        (deb,) = packages.Archive("bookworm", "amd64").fetch(archive.packages(["x"]))
        assert deb.read_bytes() == whole
        if damage is not None:
            deb.write_text(damage)
    assert calls == ["update", "download", "download", "download"]
    packages.Archive("bookworm", "amd64").fetch(archive.packages(["x"]))
    assert len(calls) == 4, "what is whole is kept"


def test_what_a_package_needs() -> None:
    depends = "linux-headers-6.1.0-1-common (= 6.1.1-1), linux-kbuild-6.1 (>= 6.1), linux-image:any | other, last"
    package = packages.Package("linux-headers-x", "1", "", "", "", depends)
    assert package.needs == ["linux-headers-6.1.0-1-common", "linux-kbuild-6.1", "linux-image", "last"]
    assert packages.Package("x", "1", "", "", "").needs == []


def test_a_module_is_built_beside_its_neighbours_but_not_where_it_is(tmp_path: Path) -> None:
    source = tmp_path / "tree" / "module"
    (source / "sub").mkdir(parents=True)
    (tmp_path / "tree" / "shared.h").write_text("shared")
    for name in ("Kbuild", "a.c", "a.o", "a.ko", ".a.o.cmd", "sub/b.c", "sub/b.mod.c"):
        (source / name).write_text(name)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    copy = kbuild._shadow(source, scratch)
    assert sorted(str(path.relative_to(copy)) for path in copy.rglob("*") if not path.is_dir()) == ["Kbuild", "a.c", "sub/b.c"]
    assert (copy / ".." / "shared.h").read_text() == "shared"
    (copy / "a.o").write_text("new")
    assert (source / "a.o").read_text() == "a.o"


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ("  CC [M] x.o\nx.c:3:5: error: 'y' undeclared\nmake: *** Error 2\n", "m does not build: x.c:3:5: error: 'y' undeclared"),
        ("ERROR: modpost: \"f\" undefined!\n", 'm does not build: ERROR: modpost: "f" undefined!'),
        ("only this\n", "m does not build: only this"),
        ("", "m does not build: make printed nothing"),
    ],
)
def test_why_a_module_does_not_build(log: str, told: str) -> None:
    assert kbuild._reason(log, "m") == told


def test_the_program_of_a_device_is_of_this_tree_or_an_installed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "root", lambda: tmp_path)
    installed = tmp_path / "data"
    (installed / "programs" / "mipsel").mkdir(parents=True)
    (installed / "images.toml").touch()
    monkeypatch.setenv("KTRXER_LAB_DATA", str(installed))
    assert places.program("mipsel") is None
    assert "install" in places.program_remedy()
    (installed / "programs" / "mipsel" / "ktrxer").touch()
    assert places.program("mipsel") == installed / "programs" / "mipsel" / "ktrxer"
    (tmp_path / "build-cross" / "mipsel" / "cli").mkdir(parents=True)
    (tmp_path / "build-cross" / "mipsel" / "cli" / "ktrxer").touch()
    assert places.program("mipsel") == tmp_path / "build-cross" / "mipsel" / "cli" / "ktrxer"
