# SPDX-License-Identifier: MIT OR Apache-2.0
"""Title and note of a finished run, changed in its file. All other members and fields stay as they are, those of newer versions too."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from ktrxer.store import checked, container, meta
from ktrxer.store.errors import StoreError
from ktrxer.store.names import META, PART, SUFFIX

NOTE = "note"  # the label that has the note: `ktrxer run --label note=TEXT` sets the same one


def edit(path: Path, title: str | None, note: str | None) -> meta.Meta:
    """None: unchanged. An empty note is removed. The file is replaced as a whole; it keeps its permissions."""
    if path.name.endswith(SUFFIX + PART):
        raise StoreError(f"{path}: the run is not finished; `ktrxer recover` closes one that was cut off")
    path = path.resolve()
    zipped = container.Container(path)
    where = f"{path}: {META}"
    made: dict[str, Any] = checked.load(bytes(zipped.read(META)), where)
    was = meta.read(bytes(zipped.read(META)), where)
    if title is None and note is None:
        return was
    if title is not None:
        made = made | {"title": title} if "title" in made else {"title": title} | made
    if note is not None:
        labels = dict(was.metadata.get("labels") or {})
        labels[NOTE] = note
        if not note:
            del labels[NOTE]
        made["metadata"] = {name: value for name, value in (made.get("metadata") or {}).items() if name != "labels"}
        if labels:
            made["metadata"]["labels"] = labels
    text = json.dumps(made, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
    changed = meta.read(text, where)
    members = [(name, text if name == META else bytes(zipped.read(name))) for name in zipped.members]
    kept = path.stat()
    container.write(path, members, path.with_name(f".{path.name}.{os.getpid()}"))
    with contextlib.suppress(OSError):  # of another user, or on a file system without owners
        os.chown(path, kept.st_uid, kept.st_gid)
        path.chmod(kept.st_mode & 0o7777)
    return changed
