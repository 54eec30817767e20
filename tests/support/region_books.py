"""The database of one region of a play, made once and put back for each."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from manager_world import World, full_mesh, sqlite_url

NODES = ["a", "b"]


class Books:
    """``folder``: of its file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / "ces.db"
        self.world = World(sqlite_url(folder))
        self.world.add_nodes(*NODES)
        self.world.put_topology(full_mesh(NODES))
        self._founded = self.copy()

    def copy(self) -> sqlite3.Connection:
        """As it is now."""
        kept, file = sqlite3.connect(":memory:"), sqlite3.connect(self.file)
        file.backup(kept)
        file.close()
        return kept

    def put_back(self, kept: sqlite3.Connection | None = None) -> None:
        self.world.uow.engine.dispose()
        file = sqlite3.connect(self.file)
        (kept or self._founded).backup(file)
        file.close()

    def close(self) -> None:
        self.world.close()
