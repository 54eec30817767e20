"""Sends hostile variants of each kind of message: first at the rate that is read of one node, then as fast as it
can."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from ces_experiments.security.bus_attacks import fuzzed
from ces_experiments.security.connection import Rogue
from ces_experiments.security.kinds import KINDS, SAID, Kind
from ces_experiments.security.mutations import Variant, variants
from ces_experiments.security.tally import Tally, of_the_broker
from ces_experiments.security.target import Target

SHARE: Final = 0.8  # of the rate that is read: nothing of this part is dropped unread


class Fuzzing:
    """Each kind on a connection of its own, all with the one credential. ``seconds``: for how long nothing goes faster
    than it is read. Questions are answered meanwhile, also with hostile variants."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.read: Counter[str] = Counter()
        self._answers = {kind.subject(target.node): self._of(kind) for kind in KINDS if kind.answers}
        self.answered: Counter[str] = Counter()

    async def run(self) -> dict[str, Any]:
        answerer = self._connection()
        await answerer.open()
        answerer.asked = self._answer
        try:
            tallies = await asyncio.gather(*map(self._fuzz, SAID))
        finally:
            await answerer.close()
        rows = [
            {"kind": kind.name, "within_rate": self.read[kind.name], **tally.as_row()}
            for kind, tally in zip(SAID, tallies, strict=True)
        ]
        rows += [
            {"kind": kind.name, "within_rate": (count := self.answered[kind.subject(self._target.node)]),
             **Tally(count).as_row()}
            for kind in KINDS if kind.answers
        ]  # fmt: skip
        return {"kinds": rows}

    def _connection(self) -> Rogue:
        target = self._target
        return Rogue(target.nats_url, target.node, target.credentials, target.tls())

    def _of(self, kind: Kind) -> Iterator[Variant]:
        return variants(kind.sample(self._target.node), self._target.others, f"{self._target.chance} {kind.name}")

    def _answer(self, subject: str) -> bytes:
        self.answered[subject] += 1
        return next(self._answers[subject]).payload

    async def _fuzz(self, kind: Kind) -> Tally:
        rogue, left = self._connection(), islice(self._of(kind), self._target.each)
        await rogue.open()
        try:
            sent = await self._paced(rogue, kind, left)
            sent += await fuzzed(rogue, kind, left)
            with suppress(OSError, TimeoutError):
                await rogue.settled()
        finally:
            await rogue.close()
        return of_the_broker(sent, {}, rogue.seen)

    async def _paced(self, rogue: Rogue, kind: Kind, left: Iterator[Variant]) -> int:
        start, sent = time.monotonic(), 0
        while time.monotonic() < start + self._target.seconds:
            due = int((time.monotonic() - start) * kind.per_s * SHARE) + 1 - sent
            now_sent = await fuzzed(rogue, kind, islice(left, max(0, due)))
            sent += now_sent
            if due > 0 and not now_sent:  # all have been sent
                break
            await asyncio.sleep(0.02)
        self.read[kind.name] = sent
        return sent
