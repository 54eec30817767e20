"""This region as an owner of parts of split jobs: what other regions may ask of it, and its own home as well. Who asks
is known by the seal, never by what is said."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from ipaddress import IPv4Network

import structlog

from ces_common.bus.port import RemoteError
from ces_common.messages.base import Message
from ces_common.messages.split import (
    PartAnswer,
    PartCommit,
    PartCommitQuery,
    PartHold,
    PartHoldQuery,
    PartQuery,
    RemotePart,
)
from ces_federation.manager_port import Manager
from ces_federation.owner import LOOK_S, PLACED_S, REFUSED, NotAccepted, Owner
from ces_federation.wire import Handler, Wire

log = structlog.get_logger()
WORDS = ("commit", "start", "status", "release")
BlockOf = Callable[[str], IPv4Network | None]


class SplitOwner:
    """``region``: this one. ``owner``: by whom it is judged whose jobs run here as whose. ``clock``: steady.
    ``block_of``: the addresses that a region has told to be its own; None where its word does not count now."""

    def __init__(
        self, region: str, manager: Manager, owner: Owner, clock: Callable[[], float], block_of: BlockOf
    ) -> None:
        self._region, self._manager, self._owner = region, manager, owner
        self._clock, self._block_of = clock, block_of

    def serve(self, wire: Wire) -> None:
        wire.on("part-hold", self._on_hold)
        for word in WORDS:
            wire.on(f"part-{word}", self._on_word(word))

    async def _on_hold(self, region: str, data: bytes) -> bytes:
        return (await self.hold(region, PartHold.model_validate_json(data))).encode()

    def _on_word(self, word: str) -> Handler:
        model = PartCommit if word == "commit" else RemotePart

        async def act(region: str, data: bytes) -> bytes:
            return (await self.say(region, word, model.model_validate_json(data))).encode()

        return act

    async def hold(self, home: str, asked: PartHold) -> PartAnswer:
        """Ask the manager until the part has its place, or none. Raises BusError where it may or may not have acted."""
        try:
            if home != self._region and any(each.region != home for each in asked.piece.crossings):
                raise NotAccepted(f"flows of region {home}'s jobs cross to that region alone")
            file = asked.file if home == self._region else self._owner.as_ours(home, asked.file)
            query = PartHoldQuery(home=home, **asked.model_dump() | {"file": file.model_copy(update={"regions": []})})
            until = self._clock() + PLACED_S
            while (answer := await self._manager.ask("part-hold", PartAnswer, query)).fate == "waiting":
                if self._clock() >= until:  # its hold ends by itself
                    return answer
                await asyncio.sleep(LOOK_S)
        except NotAccepted as error:
            return PartAnswer(fate="released", reason=str(error), over=True)
        except RemoteError as error:
            if error.code in REFUSED:
                return PartAnswer(fate="released", reason=error.message, over=True)
            raise
        log.info("a part of a job", home=home, job=asked.job, part=asked.part, fate=answer.fate, here=answer.remote)
        return answer

    async def say(self, home: str, word: str, asked: Message) -> PartAnswer:
        """Raises BusError."""
        if isinstance(asked, PartCommit):
            try:
                self._check(home, asked)
            except ValueError as error:  # its hold ends by itself, of which it is told this way
                log.warning("a part is not committed", home=home, job=asked.job, why=str(error))
                about = asked.model_dump(include=set(RemotePart.model_fields))
                return await self._manager.ask("part-status", PartAnswer, PartQuery(home=home, **about))
            return await self._manager.ask("part-commit", PartAnswer, PartCommitQuery(home=home, **asked.model_dump()))
        return await self._manager.ask(f"part-{word}", PartAnswer, PartQuery(home=home, **asked.model_dump()))

    def _check(self, home: str, asked: PartCommit) -> None:
        """A home may lead flows to its own addresses and nowhere else, or, where it is this region, to those of the
        region that it names; to loopback ones, where no data plane is. Raises ValueError."""
        for place in asked.places:
            if home not in (self._region, place.region):
                raise ValueError(f"region {home} says where {place.task} is in region {place.region}")
            block = self._block_of(place.region)
            if not (place.address.is_loopback or (block is not None and place.address in block)):
                raise ValueError(f"{place.task} is said to be at an address that region {place.region} does not have")
