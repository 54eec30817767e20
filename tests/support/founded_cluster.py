"""A database in which nodes have joined and are linked, made once and copied for each history: to migrate one takes
longer than a history does."""

from __future__ import annotations

import atexit
import sqlite3
import tempfile
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from string import ascii_uppercase

from manager_world import START, World, full_mesh, sqlite_url
from sqlalchemy import Engine

from ces_common.db import WriteTx
from ces_common.messages.membership import JoinRequest, JoinTokenRequest
from ces_manager.nodes import membership


def memory_folder() -> str | None:
    """A folder in memory where there is one: each history makes hundreds of writes."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def join(tx: WriteTx, name: str, cpu: int, number: int) -> None:
    """A machine joins with a key of its own, the one of this number."""
    key = "U" + ascii_uppercase[number // 26 % 26] * 27 + ascii_uppercase[number % 26] * 28
    token = membership.create_token(tx, JoinTokenRequest(node=name)).token
    request = JoinRequest(
        token=token,
        name=name,
        cpu=cpu,
        memory=2**33,
        runtime="process",
        network="tc",
        public_key=key,
        host_address="127.0.0.1",
        arch="amd64",
    )
    membership.join_node(tx, request)


class FoundedCluster:
    """``nodes``: name -> millicores, each linked with each. They have the keys of the numbers below ``keys``."""

    def __init__(self, nodes: Mapping[str, int], now: datetime = START) -> None:
        folder = tempfile.TemporaryDirectory(prefix="ces-histories-", dir=memory_folder())
        atexit.register(folder.cleanup)
        self.file, self.keys = Path(folder.name) / "ces.db", len(nodes)
        world = World(sqlite_url(Path(folder.name)))
        self.engine: Engine = world.uow.engine
        for number, (name, cpu) in enumerate(nodes.items()):
            world.write(lambda tx, name=name, cpu=cpu, number=number: join(tx, name, cpu, number))
        world.put_topology(full_mesh(list(nodes)))
        self.engine.dispose()
        self._content = self._settled()

    def restore(self) -> None:
        """As it was when it was founded. The engine stays, and with it what it has compiled."""
        self.engine.dispose()
        for more in ("-wal", "-shm"):
            self.file.with_name(self.file.name + more).unlink(missing_ok=True)
        self.file.write_bytes(self._content)

    def _settled(self) -> bytes:
        """The whole database, nothing of which is in the log of writes any more."""
        connection = sqlite3.connect(self.file)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        return self.file.read_bytes()


@cache
def founded_cluster(**nodes: int) -> FoundedCluster:
    return FoundedCluster(nodes)
