# SPDX-License-Identifier: MIT OR Apache-2.0
"""The file of another program from which a run was imported, unchanged: a member of the run, as a JSON object with base64. An export in
the same format has what the tables do not have."""

from __future__ import annotations

import base64
import binascii
import json

from ktrxer.store.errors import StoreError

MEMBER = "original.json"
LIMIT = 256 << 20  # bytes of the file
KEY = "base64"


def pack(data: bytes) -> bytes:
    return json.dumps({KEY: base64.b64encode(data).decode("ascii")}).encode()


def unpack(text: bytes, where: str) -> bytes:
    if len(text) > 2 * LIMIT:
        raise StoreError(f"{where}: larger than {2 * LIMIT >> 20} MiB")
    try:
        return base64.b64decode(json.loads(text)[KEY], validate=True)
    except (ValueError, TypeError, KeyError, RecursionError, binascii.Error):
        raise StoreError(f"{where}: not an object with `{KEY}`") from None
