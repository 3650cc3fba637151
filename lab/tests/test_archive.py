# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lab's initramfs archives, read back by a second implementation written from the kernel's description of the format."""

from __future__ import annotations

import io
import stat
from pathlib import Path

import pytest
from ktrxer_lab.cpio import Tree


def read_back(data: bytes) -> list[tuple[str, int, bytes]]:
    found, at = [], 0
    while True:
        assert data[at : at + 6] == b"070701"
        fields = [int(data[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        mode, size, name_size = fields[1], fields[6], fields[11]
        name = data[at + 110 : at + 110 + name_size]
        assert name.endswith(b"\0")
        at += (110 + name_size + 3) & ~3
        body = data[at : at + size]
        assert len(body) == size
        at += (size + 3) & ~3
        if name == b"TRAILER!!!\0":
            assert set(data[at:]) <= {0} and len(data) % 512 == 0
            return found
        found.append((name[:-1].decode(), mode, body))


def written(tree: Tree) -> bytes:
    out = io.BytesIO()
    tree.write(out)
    return out.getvalue()


def test_what_goes_in_comes_out() -> None:
    tree = Tree()
    tree.file("/usr/bin/a b", b"12345", 0o755)
    tree.link("sh", "dash")
    tree.directory("empty", 0o1777)
    tree.file("empty-file", b"")
    assert read_back(written(tree)) == [
        ("empty", stat.S_IFDIR | 0o1777, b""),
        ("empty-file", stat.S_IFREG | 0o644, b""),
        ("sh", stat.S_IFLNK | 0o777, b"dash"),
        ("usr", stat.S_IFDIR | 0o755, b""),
        ("usr/bin", stat.S_IFDIR | 0o755, b""),
        ("usr/bin/a b", stat.S_IFREG | 0o755, b"12345"),
    ]


def test_parents_come_first_and_the_last_file_wins() -> None:
    tree = Tree()
    tree.file("z/y/x", b"old")
    tree.file("z/y/x", b"new")
    tree.directory("z/y", 0o700)  # exists already and is not changed
    entries = read_back(written(tree))
    assert [name for name, _, _ in entries] == ["z", "z/y", "z/y/x"]
    assert entries[-1][2] == b"new"
    assert entries[1][1] == stat.S_IFDIR | 0o755


def test_the_same_tree_gives_the_same_bytes_whatever_the_order() -> None:
    one, two = Tree(), Tree()
    one.file("a", b"1"), one.file("b", b"2")
    two.file("b", b"2"), two.file("a", b"1")
    assert written(one) == written(two)


@pytest.mark.parametrize("length", range(9))
def test_padding(length: int) -> None:
    tree = Tree()
    tree.file("n" * (length + 1), b"x" * length)
    tree.file("zzz", b"after")
    assert [body for _, _, body in read_back(written(tree))] == [b"x" * length, b"after"]


def test_archives_can_follow_each_other() -> None:
    """The kernel reads several archives in a row if each begins at a multiple of four."""
    first = Tree()
    first.file("one", b"1")
    out = io.BytesIO()
    first.write(out)
    assert out.tell() % 512 == 0
    first.write(out)
    assert out.tell() % 512 == 0


def test_copy_takes_folders_and_modes_but_no_byte_code(tmp_path: Path) -> None:
    (tmp_path / "d" / "__pycache__").mkdir(parents=True)
    (tmp_path / "d" / "__pycache__" / "x.pyc").write_bytes(b"no")
    (tmp_path / "d" / "run").write_bytes(b"yes")
    (tmp_path / "d" / "run").chmod(0o750)
    tree = Tree()
    tree.copy(tmp_path / "d", "/data")
    assert read_back(written(tree)) == [("data", stat.S_IFDIR | 0o755, b""), ("data/run", stat.S_IFREG | 0o750, b"yes")]
