"""Who is remembered by a token, for how long, and who is not."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from waiting import until

from ces_common.messages.identities import Identity
from ces_common.roles import Role
from ces_manager.access import identities
from ces_manager.access.identities import KNOWN_S, Identities
from ces_manager.database import Database
from ces_manager.errors import Forbidden

ONE, TWO = (f"ces_0{letter * 25}_{letter * 43}" for letter in "AB")
NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Reads:
    """A database whose only answer is whose token it is; ``gate`` opens for each answer."""

    def __init__(self) -> None:
        self.now, self.asked = 0.0, 0
        self.answer: Identity | Forbidden = identity("one")
        self.gate = asyncio.Event()
        self.gate.set()
        self.clock = SimpleNamespace(steady=lambda: self.now, now=lambda: NOW + timedelta(seconds=self.now))
        self.uow = SimpleNamespace()

    async def read(self, _look: object) -> Identity:
        self.asked += 1
        answer = self.answer
        await self.gate.wait()
        if isinstance(answer, Forbidden):
            raise answer
        return answer

    async def in_writer(self, _act: object) -> None: ...


def identity(name: str, **more: Any) -> Identity:
    return Identity(name=name, role=Role.VIEWER, tenants=["red"], **more)


@pytest.fixture
async def reads() -> Reads:
    return Reads()


def known_by(reads: Reads) -> Identities:
    return Identities(cast(Database, reads), "the-first-token-of-all")


async def test_the_database_is_asked_once_in_a_while(reads: Reads) -> None:
    known = known_by(reads)
    assert not known.knows(ONE)
    for _ in range(3):
        assert (await known.of(ONE)).name == "one"
    assert (reads.asked, known.knows(ONE)) == (1, True)
    reads.now += KNOWN_S
    await known.of(ONE)
    assert reads.asked == 2


async def test_a_token_that_is_good_no_more_is_not_remembered(reads: Reads) -> None:
    known = known_by(reads)
    await known.of(ONE)
    reads.now, reads.answer = KNOWN_S, Forbidden("revoked")
    with pytest.raises(Forbidden):
        await known.of(ONE)
    assert not known.knows(ONE)


async def test_one_that_expires_is_asked_about_at_once(reads: Reads) -> None:
    known, reads.answer = known_by(reads), identity("one", expires_at=NOW + timedelta(seconds=1))
    await known.of(ONE)
    reads.now = 1.0
    await known.of(ONE)
    assert reads.asked == 2


async def test_what_was_read_before_a_token_was_revoked_is_not_kept(reads: Reads) -> None:
    known = known_by(reads)
    reads.gate.clear()
    asking = asyncio.create_task(known.of(ONE))
    await until(lambda: reads.asked == 1)
    known.forget("one")
    reads.gate.set()
    assert (await asking).name == "one"
    reads.answer = Forbidden("revoked")
    with pytest.raises(Forbidden):
        await known.of(ONE)


async def test_only_who_was_revoked_is_forgotten(reads: Reads) -> None:
    known = known_by(reads)
    await known.of(ONE)
    reads.answer = identity("two")
    await known.of(TWO)
    known.forget("one")
    assert (known.knows(ONE), known.knows(TWO)) == (False, True)


async def test_who_asks_again_and_again_is_remembered_longest(reads: Reads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identities, "REMEMBERED", 2)
    known = known_by(reads)
    await known.of(ONE)
    await known.of(TWO)
    await known.of(ONE)
    await known.of(TWO[:-1] + "C")
    assert (known.knows(ONE), known.knows(TWO)) == (True, False)


@pytest.mark.parametrize("token", ["", "ces_", "guess", "a.b.c", ONE + "x"])
async def test_what_is_no_token_of_ours_costs_no_look(reads: Reads, token: str) -> None:
    with pytest.raises(Forbidden, match="not known here"):
        await known_by(reads).of(token)
    assert reads.asked == 0
