"""One JSON file a part, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Cache:
    """A folder of results."""

    folder: Path

    def path(self, label: str, key: str) -> Path:
        """Where results are, or will be: their name, and a hash of all that they depend on."""
        return self.folder / f"{label.replace(' ', '_')}_{key}.json"

    def read(self, path: Path) -> dict[str, Any] | None:
        """The results in a file; None where there are none, or where writing them was cut off."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return dict(found)

    def write(self, path: Path, results: dict[str, Any]) -> None:
        """Write a file whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(results), encoding="utf-8")
        partial.replace(path)
