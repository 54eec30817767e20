"""Lends the device while its owner does not need it, and has it given back the moment that changes."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Final, get_args

import structlog

from ces_common.bus.port import Message, RemoteError
from ces_edge_agent.lease import Clocks
from ces_edge_agent.lending import command, record
from ces_edge_agent.lending.decision import BY_MEMORY, LONGEST_GRACE_S, Command, Rules, Standing, commanded, looked
from ces_edge_agent.lending.owner_load import OwnerLoad
from ces_edge_agent.settings import AgentSettings

log = structlog.get_logger()
WORDS: Final[tuple[Command, ...]] = get_args(Command)
LOOK_S: Final = 0.25  # how often the owner's load is measured
COMMAND_S: Final = 0.1  # how often the owner's word is looked for


class Lender:
    """``workers``: processes of CES's workers. ``reclaimed`` is called at once when the owner has the device back, and
    freezes all workers; ``changed`` after each change."""

    def __init__(
        self,
        rules: Rules,
        state_dir: Path,
        clocks: Clocks,
        load: OwnerLoad,
        workers: Callable[[], Collection[int]],
        reclaimed: Callable[[], Awaitable[None]],
        changed: Callable[[], None],
    ) -> None:
        self._rules, self._folder, self._clocks, self._load = rules, state_dir, clocks, load
        self._workers, self._reclaimed, self._changed = workers, reclaimed, changed
        self._record = record.record_file(state_dir)
        self._standing = record.load(self._record, rules, clocks.boot, clocks.steady())
        self._until = clocks.steady() + LONGEST_GRACE_S  # when the last worker must be gone, if it is not lent
        self._stays: Command | None = None  # the word that was obeyed last, while it lies there
        self._unread = ""  # why there is one that cannot be read
        self._given_back = asyncio.Event()
        if not self._standing.lent:
            self._given_back.set()
        record.store(self._record, self._standing, clocks.boot)

    @property
    def lent(self) -> bool:
        """Whether workers may run here."""
        return self._standing.lent

    def left_s(self) -> float:
        """Seconds after which no worker may be left; without end while the device is lent."""
        return math.inf if self.lent else max(self._until - self._clocks.steady(), 0.0)

    async def over(self) -> None:
        """Returns when no worker may be left."""
        while (left_s := self.left_s()) > 0:
            if left_s == math.inf:
                await self._given_back.wait()
            else:
                await asyncio.sleep(min(left_s, LOOK_S))  # memory that runs short moves the end

    async def run(self) -> None:
        if not self._load.found:
            log.warning("the owner's control group is not there: it counts as idle until it is")
        await asyncio.gather(self._follow_load(), self._follow_commands())

    async def say(self, word: Command) -> None:
        """The owner's word. Raises OSError where it cannot be kept."""
        await asyncio.to_thread(command.give, self._folder, word)
        await self._obey()

    async def _follow_load(self) -> None:
        measured = True
        while True:
            try:
                look = self._load.look(self._clocks.steady(), self._workers())
            except (OSError, ValueError) as error:
                if measured:
                    log.warning("the owner's load cannot be measured: only commands count", error=str(error))
                measured = False
            else:
                measured = True
                if look is not None:
                    await self._take(looked(self._standing, self._rules, look))
                    if look.short_of_memory:
                        self._until = min(self._until, look.at)
            await asyncio.sleep(LOOK_S)

    async def _follow_commands(self) -> None:
        while True:
            await self._obey()
            await asyncio.sleep(COMMAND_S)

    async def _obey(self) -> None:
        word = self._word()
        if word == "lend":  # is obeyed once; what is said from here on is another word
            try:
                command.forget(self._folder)
            except OSError as error:
                if self._stays == word:
                    return
                log.warning("the owner's word stays where it was, and is not obeyed again", error=str(error))
        self._stays = word
        if word is not None:
            await self._take(commanded(self._standing, word, self._clocks.steady()))

    def _word(self) -> Command | None:
        try:
            word, unread = command.given(self._folder), ""
        except OSError as error:
            word, unread = None, str(error)
        if unread and unread != self._unread:
            log.warning("the owner's word cannot be read", error=unread)
        self._unread = unread
        return word

    async def _take(self, standing: Standing) -> None:
        before, self._standing = self._standing, standing
        if standing.lent is not before.lent:
            if standing.lent:
                log.info("the device is lent")
                self._given_back.clear()
            else:
                log.info("the owner has the device back", why=standing.why, quiet_s=standing.quiet_s)
                grace_s = 0.0 if standing.why == BY_MEMORY else LONGEST_GRACE_S
                self._until = self._clocks.steady() + grace_s
                self._given_back.set()
                await self._freeze()
            self._changed()
        if (standing.lent, standing.quiet_s) != (before.lent, before.quiet_s):  # another word may have come meanwhile
            record.store(self._record, self._standing, self._clocks.boot)

    async def _freeze(self) -> None:
        try:
            await self._reclaimed()
        except Exception:  # they end all the same, and so does every other worker
            log.exception("workers could not be frozen")


class NotLent:
    """A device without an owner beside CES: it is always CES's."""

    @property
    def lent(self) -> bool:
        return True

    def left_s(self) -> float:
        return math.inf

    async def over(self) -> None:
        await asyncio.Event().wait()

    async def run(self) -> None:
        return None

    async def say(self, word: Command) -> None:
        raise RemoteError("not-lent", "this node is not lent: only an agent with CES_LENT=true gives its device back")


def make(
    settings: AgentSettings,
    clocks: Clocks,
    workers: Callable[[], Collection[int]],
    reclaimed: Callable[[], Awaitable[None]],
    changed: Callable[[], None],
) -> Lender | NotLent:
    """As ``CES_LENT`` says. Raises OSError."""
    if settings.lent:
        load = OwnerLoad(settings.owner_group)
        return Lender(settings.lending, settings.state_dir, clocks, load, workers, reclaimed, changed)
    record.record_file(settings.state_dir).unlink(missing_ok=True)
    command.forget(settings.state_dir)
    return NotLent()


async def answer(lender: Lender | NotLent, word: Command, _: Message) -> bytes:
    """The answer to the owner's word that came over the manager. Raises RemoteError."""
    try:
        await lender.say(word)
    except OSError as error:
        raise RemoteError("not-kept", f"the device cannot write the command down: {error}") from error
    return b""
