# SPDX-License-Identifier: MIT OR Apache-2.0
"""lab/ktrxer_lab/data/images.toml: the packages and kernels of the images."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ktrxer_lab import device, places
from ktrxer_lab.errors import LabError
from ktrxer_lab.packages import Archive


@dataclass(frozen=True)
class Recipe:
    """lab/ktrxer_lab/data/images.toml."""

    path: Path
    table: dict[str, Any]

    @staticmethod
    def load() -> Recipe:
        path = places.data() / "images.toml"
        return Recipe(path, device.read_toml(path))

    def get(self, *names: str) -> Any:
        value: Any = self.table
        for name in names:
            if not isinstance(value, dict) or name not in value:
                raise LabError(f"{self.path}: no [{'.'.join(names)}]")
            value = value[name]
        return value

    def archives(self, chosen: device.Device) -> set[Archive]:
        """The archives of Debian that a device is made from."""
        suites = {self.get("userland"), *(self.get("kernels", kernel, "suite") for kernel in chosen.kernels)}
        return {Archive(suite, chosen.arch) for suite in suites}
