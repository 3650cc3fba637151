# SPDX-License-Identifier: MIT OR Apache-2.0
"""The configuration object of a responsiveness server (draft-ietf-ippm-responsiveness, "Well-Known Uniform Resource Identifier")."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

WELL_KNOWN = "/.well-known/nq"
MOST_BYTES = 65_536
SMALL_BYTES = 1
LARGE_BYTES = 8 << 30  # at least, by the draft

# The names of the draft, and those of its first versions, which clients and servers in the field still use.
NAMES = {
    "small": ("small_download_url", "small_https_download_url"),
    "large": ("large_download_url", "large_https_download_url"),
    "upload": ("upload_url", "https_upload_url"),
}


class ConfigError(Exception):
    """The object is not valid, and a client must ignore the whole of it; one line."""


@dataclass(frozen=True)
class Config:
    small: str
    large: str
    upload: str
    test_endpoint: str = ""  # host to connect to, instead of that of the URLs


def parse(text: bytes) -> Config:
    if len(text) > MOST_BYTES:
        raise ConfigError(f"the configuration has more than {MOST_BYTES} bytes")
    try:
        made = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        if isinstance(error, _Twice):
            raise ConfigError(str(error)) from None
        raise ConfigError(f"the configuration is not JSON: {text[:40]!r}") from None
    if not isinstance(made, dict) or not isinstance(urls := made.get("urls"), dict):
        raise ConfigError("the configuration has no urls")
    if made.get("version") not in (1, "1") or isinstance(made.get("version"), bool):
        raise ConfigError(f"the configuration has version {str(made.get('version'))[:20]}; this client supports version 1")
    found = {what: _url(urls, names) for what, names in NAMES.items()}
    hosts = {(urlsplit(url).scheme, urlsplit(url).netloc) for url in found.values()}
    if len(hosts) > 1:
        raise ConfigError(f"the three URLs have different hosts: {', '.join(sorted(host for _, host in hosts))}")
    endpoint = made.get("test_endpoint", "")
    if not isinstance(endpoint, str) or not endpoint.isprintable() or len(endpoint) > 255:
        raise ConfigError("test_endpoint is no host")
    return Config(found["small"], found["large"], found["upload"], endpoint)


def one_domain(host: str, other: str) -> bool:
    """The same host, or two names with the same last two labels: another domain belongs to other people, and its host is not loaded."""
    ends = [name.lower().rstrip(".").split(".")[-2:] for name in (host, other)]
    return host == other or (ends[0] == ends[1] and len(ends[0]) == 2 and not ends[0][1].isdecimal())


def _url(urls: dict[str, Any], names: tuple[str, str]) -> str:
    url = next((urls[name] for name in names if name in urls), None)
    try:
        parts = urlsplit(url) if isinstance(url, str) and url.isascii() and url.isprintable() and " " not in url else None
        good = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good or not isinstance(url, str):
        raise ConfigError(f"{names[0]} is missing" if url is None else f"{names[0]} is no URL: {str(url)[:100]!r}")
    return url


class _Twice(ValueError):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A field that appears twice makes the object invalid; unknown names are ignored."""
    known = {"version", "urls", "test_endpoint", *(name for names in NAMES.values() for name in names)}
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made and name in known:
            raise _Twice(f"{name} appears twice in the configuration")
        made[name] = value
    return made


def write(base: str) -> bytes:
    """`base`: the URL below which the three objects are. The object has both sets of names, for all versions of clients."""
    urls = {name: f"{base}/{what}" for what, names in NAMES.items() for name in names}
    return json.dumps({"version": 1, "urls": urls}, indent=1).encode()
