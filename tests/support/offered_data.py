"""A folder of datasets that a node offers, and where readers of these tests are."""

from __future__ import annotations

import os
from pathlib import Path

ME = "127.0.0.1"
CONTENT = os.urandom(1 << 20)
PATIENCE_S = 20.0


def datasets_in(folder: Path) -> Path:
    """``mnist``, with a file of ``CONTENT``, and ``words``."""
    root = folder / "datasets"
    (root / "mnist" / "train").mkdir(parents=True)
    (root / "words").mkdir()
    (root / "mnist" / "images").write_bytes(CONTENT)
    (root / "mnist" / "empty").touch()
    return root
