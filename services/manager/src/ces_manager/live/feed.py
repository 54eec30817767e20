"""The live picture for all who follow it: looked at once, and encoded once for all who may see the same."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from ces_common.db import UNAVAILABLE, cause_of
from ces_manager.live.picture import Picture, changed, shown

log = structlog.get_logger()
EVERY_S: Final = 2.0
KEPT: Final = 30  # changes that a client may resume after
# Looks after the last follower has left: a hidden tab comes back, and nobody makes looks by coming and going.
LINGER: Final = 15
Look = Callable[[], Awaitable[Picture]]


@dataclass(frozen=True, slots=True)
class Frame:
    """What a stream sends: all of the picture, or what changed since the frame before."""

    number: int
    kind: str  # keyframe or change
    data: str


@dataclass
class _Audience:
    """Those who may see the same. ``whole``: of the last picture, once somebody has asked for it."""

    tenants: frozenset[str] | None
    followers: int = 0
    idle: int = 0  # looks since somebody followed
    frames: deque[Frame] = field(default_factory=lambda: deque(maxlen=KEPT))
    whole: Frame | None = None


class LiveFeed:
    """Looks every two seconds while somebody follows, and a while longer. A follower who is slow, or resumes
    after what is no longer kept, gets the whole picture again."""

    def __init__(self, look: Look, every_s: float = EVERY_S) -> None:
        self._look, self._every_s = look, every_s
        self.name = secrets.token_hex(4)  # numbers are this feed's own
        self._number = 0
        self._picture: Picture | None = None
        self._audiences: dict[Hashable, _Audience] = {}
        self._tick = asyncio.Event()  # set, and replaced, when there is another number
        self._looking: asyncio.Task[None] | None = None

    async def follow(self, tenants: Collection[str] | None, last: str | None = None) -> AsyncGenerator[Frame | None]:
        """``last``: the id of the last frame that was seen. None where there is nothing new: at first, after ``wake``,
        and every few seconds while the database does not answer."""
        key = None if tenants is None else frozenset(tenants)
        audience = self._audiences.setdefault(key, _Audience(key))
        audience.followers += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._run())
        seen = self._number_of(last)
        try:
            while True:
                frames = self._after(audience, seen)
                for frame in frames:
                    seen = frame.number
                    yield frame
                if not frames:
                    yield None
                await self._wait(seen)
        finally:
            audience.followers -= 1

    def wake(self) -> None:
        """Have all streams look whether there is anything new, or whether they are to end."""
        self._tick.set()
        self._tick = asyncio.Event()

    def id_of(self, frame: Frame) -> str:
        return f"{self.name}.{frame.number}"

    def _number_of(self, last: str | None) -> int | None:
        name, _, number = (last or "").partition(".")
        return int(number) if name == self.name and number.isascii() and number.isdecimal() else None

    def _after(self, audience: _Audience, seen: int | None) -> list[Frame]:
        if self._picture is None or seen == self._number:
            return []
        first = audience.frames[0].number if audience.frames else self._number + 1
        if seen is not None and first <= seen + 1 and seen < self._number:
            return [frame for frame in audience.frames if frame.number > seen]
        if audience.whole is None:
            audience.whole = Frame(self._number, "keyframe", _encoded(shown(self._picture, audience.tenants)))
        return [audience.whole]

    async def _wait(self, seen: int | None) -> None:
        """Until there is another number, or there should have been one long ago."""
        if self._picture is None or seen == self._number:
            with suppress(TimeoutError):
                async with asyncio.timeout(2 * self._every_s):
                    await self._tick.wait()

    async def _run(self) -> None:
        """One look after the other, until nobody has followed for a while."""
        while self._audiences:
            try:
                picture = await self._look()
            except UNAVAILABLE as error:
                log.info("the live picture is not renewed: the database does not answer", error=cause_of(error))
            except Exception:  # of a look; everybody who follows waits for the next one
                log.exception("the live picture cannot be made")
            else:
                self._take(picture)
            await asyncio.sleep(self._every_s)
            for key, audience in list(self._audiences.items()):
                audience.idle = 0 if audience.followers else audience.idle + 1
                if audience.idle > LINGER:
                    del self._audiences[key]
        # What is known would be old when somebody follows again.
        self._looking, self._picture = None, None
        self._number += 1

    def _take(self, picture: Picture) -> None:
        before, self._picture = self._picture, picture
        self._number += 1
        for audience in self._audiences.values():
            audience.whole = None
            if before is not None:
                data = _encoded(changed(before, picture, audience.tenants))
                audience.frames.append(Frame(self._number, "change", data))
        self.wake()


def _encoded(document: dict[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
