"""What regions say to each other: one-way messages, and questions whose askers wait for a moment. Nothing is stored on
the way, so whoever asks again must be able to ask again."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import structlog
from prometheus_client import Counter as Metric
from ulid import ULID

from ces_common import subjects
from ces_common.bus.port import Bus, BusError, Message, RequestTimeout
from ces_common.rates import SenderRate
from ces_federation.seals import BadSeal, seal, unseal

log = structlog.get_logger()
REFUSED = Metric("ces_region_messages_refused_total", "Messages of other regions that were refused", ["region"])
ANSWER = "answer"
LARGEST = 2 * 1024 * 1024  # bytes of one message; a job file is submitted with half of it at most
PER_S, BURST, AT_ONCE = 50.0, 500, 32  # messages of one region, and its questions that are being answered
LOOKS_PER_S, LOOKS_BURST, LOOKS_AT_ONCE = 20.0, 100, 8  # the same of what people look at
ANSWERS_PER_S, ANSWERS_BURST = 200.0, 1000
ANSWER_S = 2.0
SIGN_S, SIGN_EVERY_S = 1.0, 0.3  # without a sign of life; between two of them


@dataclass(frozen=True, slots=True)
class Limits:
    """What one region may say: ``per_s`` messages in the long run, ``burst`` at once, and how many of its questions are
    being answered ``at_once``."""

    per_s: float
    burst: int
    at_once: int


WORDS = Limits(PER_S, BURST, AT_ONCE)  # what regions say to each other
LOOKS = Limits(LOOKS_PER_S, LOOKS_BURST, LOOKS_AT_ONCE)  # what people look at, who must hold up none of that
ANSWERS = Limits(ANSWERS_PER_S, ANSWERS_BURST, 0)  # to what was asked
LOOKED_AT = ("logs", "flows")

Handler = Callable[[str, bytes], Awaitable[bytes]]
"""Answers a region's question. Whatever it raises, the asker gets no answer."""


class Wire:
    """``keys``: of each other region. ``clock``: the time of day, seconds since the epoch."""

    def __init__(
        self, bus: Bus, region: str, keys: Mapping[str, bytes], clock: Callable[[], float] = time.time
    ) -> None:
        self._bus, self._region, self._keys, self._clock = bus, region, dict(keys), clock
        self._handlers: dict[str, Handler] = {}
        self._asked: dict[tuple[str, str], asyncio.Future[bytes]] = {}
        self._at_it: Counter[tuple[str, str]] = Counter()  # signs of those who are asked
        self._seen: dict[tuple[str, str], float] = {}  # questions, so that none is answered twice
        self._answering: dict[tuple[str, Limits], set[asyncio.Task[None]]] = defaultdict(set)
        self._rates = {limits: SenderRate(limits.per_s, limits.burst) for limits in (WORDS, LOOKS, ANSWERS)}
        self._heard_of: Counter[str] = Counter()

    def on(self, operation: str, handler: Handler) -> None:
        self._handlers[operation] = handler

    def heard_of(self, region: str) -> int:
        """How many messages of it were heard."""
        return self._heard_of[region]

    async def start(self) -> None:
        await self._bus.subscribe(subjects.of_region(self._region, subjects.ANY), self._heard)

    async def close(self) -> None:
        tasks = [task for tasks in self._answering.values() for task in tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def tell(self, region: str, operation: str, data: bytes) -> None:
        """Raises BusUnavailable."""
        await self._send(region, operation, str(ULID()), data)

    async def ask(self, region: str, operation: str, data: bytes, timeout_s: float = ANSWER_S) -> bytes:
        """Raises RequestTimeout where no answer comes, or for ``SIGN_S`` no sign that one is being made, which may mean
        anything, and BusUnavailable."""
        id_ = str(ULID())
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asked[region, id_] = answer
        try:
            await self._send(region, operation, id_, data)
            async with asyncio.timeout(timeout_s):
                signs, slept = -1, False
                while not answer.done() and (slept or self._at_it[region, id_] > signs):
                    signs, since = self._at_it[region, id_], time.monotonic()
                    await asyncio.wait({answer}, timeout=SIGN_S)
                    slept = (
                        time.monotonic() - since > 1.5 * SIGN_S
                    )  # this process: what came meanwhile is yet to be read
                if not answer.done():
                    raise TimeoutError
                return answer.result()
        except TimeoutError:
            raise RequestTimeout(f"region {region} did not answer within {timeout_s:g} s") from None
        finally:
            del self._asked[region, id_]
            self._at_it.pop((region, id_), None)

    async def _send(self, region: str, operation: str, id_: str, data: bytes) -> None:
        subject = subjects.between_regions(region, self._region, operation, id_)
        await self._bus.publish(subject, seal(self._keys[region], subject, data, self._clock()))

    async def _heard(self, message: Message) -> None:
        try:
            to, region, operation, id_ = subjects.parse_between_regions(message.subject)
        except ValueError:
            return
        key = self._keys.get(region)
        if key is None or to != self._region:
            return
        try:
            if len(message.data) > LARGEST:
                raise BadSeal(f"{len(message.data)} bytes are too many")
            limits = _limits(operation)
            if not self._rates[limits].allows(region, time.monotonic()):
                raise BadSeal("too many messages at once")
            data = unseal(key, message.subject, message.data, self._clock())
        except BadSeal as error:
            REFUSED.labels(region).inc()
            log.warning("a message of another region is refused", region=region, error=str(error))
            return
        self._heard_of[region] += 1
        if operation == ANSWER:
            waiting = self._asked.get((region, id_))
            if waiting is not None and not waiting.done():
                if data:
                    waiting.set_result(data)
                else:
                    self._at_it[region, id_] += 1
            return
        handler, tasks = self._handlers.get(operation), self._answering[region, limits]
        if handler is None or self._is_repeated(region, id_) or len(tasks) >= limits.at_once:
            return
        task = asyncio.create_task(self._answer(region, id_, handler, data))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def _is_repeated(self, region: str, id_: str) -> bool:
        """A message may be said again by whoever has heard it, as long as it is fresh."""
        now = time.monotonic()
        while self._seen and now - next(iter(self._seen.values())) > 3 * 60.0:
            del self._seen[next(iter(self._seen))]
        if (region, id_) in self._seen:
            return True
        self._seen[region, id_] = now
        return False

    async def _answer(self, region: str, id_: str, handler: Handler, data: bytes) -> None:
        """An empty answer says that the real one is being made: whoever hears nothing takes this region to be away."""
        making = asyncio.ensure_future(handler(region, data))
        try:
            while not (await asyncio.wait({making}, timeout=SIGN_EVERY_S))[0]:
                await self._send(region, ANSWER, id_, b"")
            answer = making.result()
            if answer:
                await self._send(region, ANSWER, id_, answer)
        except (BusError, ValueError) as error:
            log.warning("a region's question is not answered", region=region, error=str(error))
        except Exception:
            log.exception("a region's question is not answered", region=region)
        finally:
            making.cancel()


def _limits(operation: str) -> Limits:
    if operation == ANSWER:
        return ANSWERS
    return LOOKS if operation in LOOKED_AT else WORDS
