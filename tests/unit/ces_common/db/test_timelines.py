"""Connections that lead to servers of different timelines, while one takes over from another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from manager_world import World, sqlite_url
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from ces_common.db.engine import TIMELINE


class Servers:
    """The timelines that connections tell: ``mixed`` one after the other, afterwards ``present``."""

    def __init__(self) -> None:
        self.present, self.mixed = 1, list[int]()

    def checkout(self, _connection: object, record: Any, _proxy: object) -> None:
        record.info[TIMELINE] = self.mixed.pop(0) if self.mixed else self.present


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(sqlite_url(tmp_path))
    yield world
    world.close()


@pytest.mark.parametrize("mixed", [[2, 1], [1, 2]])
def test_while_connections_lead_to_two_servers_nothing_is_read(world: World, mixed: list[int]) -> None:
    servers = Servers()
    event.listen(world.uow.engine, "checkout", servers.checkout)
    before = epoch(world)
    servers.present = 2
    if mixed[0] == 1:  # the first to lead to the new server
        assert epoch(world) != before
        servers.mixed = [1]
    else:
        servers.mixed = mixed
    with pytest.raises(OperationalError, match="another server has taken over"):
        epoch(world)
    after = epoch(world)
    assert after != before
    assert epoch(world) == after


def epoch(world: World) -> str:
    with world.uow.read() as tx:
        return tx.cluster().epoch
