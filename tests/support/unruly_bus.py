"""The bus in memory between processes that may be cut off from it, and whose messages may be held up, lost and
repeated.

Every process has a bus of its own. What it sends and what it hears pass through the post office, which lets them
through at once unless it was told otherwise. A process's handlers run as part of that process, and end with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from memory_bus import MemoryBroker, MemoryBus
from processes import NOBODY

from ces_common import subjects as wire
from ces_common.bus.port import (
    DEFAULT_TIMEOUT_S,
    LARGEST_ANSWER,
    BusError,
    BusUnavailable,
    Callback,
    Delivery,
    Entry,
    Message,
    RemoteError,
    RequestTimeout,
    Retry,
    Subscription,
)

AGAIN_S = 5.0  # after which the stream delivers again what was lost
Way = Literal["out", "in"]
Mode = Literal["open", "held", "cut"]
T = TypeVar("T")


def nothing() -> None:
    """Nobody is told."""


@dataclass(eq=False)
class Letter:
    """``lost``: called in place of ``arrive`` where it never does."""

    process: str
    way: Way
    subject: str
    arrive: Callable[[], None]
    lost: Callable[[], None] = nothing


class Said(bytes):
    """An answer of a process. ``lost``: it was never asked."""

    process = ""
    lost = False


class SaidNo(RemoteError):
    """A refusal of a process."""

    process = ""
    lost = False


class PostOffice:
    """``modes``: what happens to what a process sends or hears. ``held``: letters that have not arrived yet.
    ``proposals``: those that the stream has, in order."""

    def __init__(self) -> None:
        self.proposals: list[bytes] = []
        self.modes: dict[tuple[str, Way], Mode] = {}
        self.stalled: set[tuple[str, str]] = set()  # processes, and subjects of which they get nothing yet
        self.held: list[Letter] = []

    def mode(self, process: str, way: Way) -> Mode:
        return self.modes.get((process, way), "open")

    def send(
        self, process: str, way: Way, subject: str, arrive: Callable[[], None], lost: Callable[[], None] = nothing
    ) -> None:
        mode = self.mode(process, way)
        if mode == "open" and way == "in" and (process, subject) in self.stalled:
            mode = "held"
        match mode:
            case "open":
                arrive()
            case "held":
                self.held.append(Letter(process, way, subject, arrive, lost))
            case "cut":
                lost()

    def set(self, process: str, way: Way, mode: Mode) -> None:
        """Letters that were held up stay so until ``deliver`` or ``drop``."""
        self.modes[process, way] = mode

    def deliver(self, letter: Letter, *, again: bool = False) -> None:
        """``again``: it will come once more."""
        if not again:
            self.held.remove(letter)
        letter.arrive()

    def drop(self, letter: Letter) -> None:
        self.held.remove(letter)
        letter.lost()

    def open(self, process: str) -> None:
        """What was held up arrives, and from now on everything does at once."""
        self.modes = {key: mode for key, mode in self.modes.items() if key[0] != process}
        self.stalled = {each for each in self.stalled if each[0] != process}
        mine = [letter for letter in self.held if letter.process == process]
        self.held = [letter for letter in self.held if letter.process != process]
        for letter in mine:
            letter.arrive()


class UnrulyBus(MemoryBus):
    """One process's connection. Its handlers run in the context in which they were registered."""

    def __init__(self, broker: MemoryBroker, post: PostOffice, process: str, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(broker)
        self._post, self._process, self._loop = post, process, loop
        self._dead = False
        self._callbacks: list[Callback] = []

    async def kill(self) -> None:
        """As the end of its process closes it: nobody says goodbye."""
        self._dead, self._connected = True, False
        for each in self._open:
            await each.close()

    def on_reconnect(self, callback: Callback) -> None:
        self._callbacks.append(self._own(callback))

    def reconnected(self) -> None:
        """What was lost is not sent again: those who asked for it are told that something may be missing."""
        for callback in self._callbacks:
            self._spawn(callback())

    async def publish(self, subject: str, data: bytes, *, headers: Mapping[str, str] | None = None) -> None:
        self._check(subject, data)
        message = Message(subject, data, dict(headers or {}))
        self._post.send(self._process, "out", subject, lambda: self._broker.route(message))

    async def publish_fact(
        self, subject: str, data: bytes, *, message_id: str, headers: Mapping[str, str] | None = None
    ) -> bool:
        put = super().publish_fact

        async def store() -> bool:
            first = await put(subject, data, message_id=message_id, headers=headers)
            if first and wire.matches("ces.v1.evt.*.proposed.*", subject):
                self._post.proposals.append(data)
            return first

        return await self._to_broker(subject, store)

    async def request(
        self, subject: str, data: bytes = b"", *, timeout_s: float = DEFAULT_TIMEOUT_S, largest: int = LARGEST_ANSWER
    ) -> bytes:
        ask = super().request
        return await self._to_broker(
            subject, lambda: ask(subject, data, timeout_s=timeout_s, largest=largest), timeout_s
        )

    async def kv_put(self, key: str, data: bytes, *, after: int | None = None) -> int:
        put = super().kv_put
        return await self._to_broker(key, lambda: put(key, data, after=after))

    async def kv_entry(self, key: str) -> Entry:
        entry = super().kv_entry
        return await self._to_broker(key, lambda: entry(key))

    async def kv_delete(self, key: str) -> None:
        delete = super().kv_delete
        await self._to_broker(key, lambda: delete(key))

    async def kv_keys(self, kind: str) -> list[str]:
        keys = super().kv_keys
        return await self._to_broker(kind, lambda: keys(kind))

    async def subscribe(
        self, subject: str, handler: Callable[[Message], Awaitable[None]], *, queue: str | None = None
    ) -> Subscription:
        own = self._own(handler)

        async def heard(message: Message) -> None:
            self._post.send(self._process, "in", message.subject, lambda: self._spawn(own(message)))

        return await super().subscribe(subject, heard, queue=queue)

    async def kv_subscribe(self, node: str, handler: Callable[[str, bytes | None], Awaitable[None]]) -> Subscription:
        own = self._own(handler)

        async def heard(key: str, data: bytes | None) -> None:
            self._post.send(self._process, "in", wire.desired_change(key), lambda: self._spawn(own(key, data)))

        return await super().kv_subscribe(node, heard)

    async def serve(self, subject: str, handler: Any, **more: Any) -> Subscription:
        return await super().serve(subject, self._heard(subject, self._own(handler)), **more)

    async def serve_latest(self, subject: str, handler: Any, **more: Any) -> Subscription:
        return await super().serve_latest(subject, self._heard(subject, self._own(handler)), **more)

    async def consume(self, durable: str, subjects: list[str], handler: Any, **more: Any) -> Subscription:
        own = self._own(handler)

        async def handled(delivery: Delivery) -> None:
            if not await self._arrives(durable):
                raise Retry(AGAIN_S, "it was lost on its way")
            await own(delivery)

        return await super().consume(durable, subjects, handled, **more)

    # How things pass

    async def _to_broker(
        self, subject: str, ask: Callable[[], Awaitable[T]], timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> T:
        """Ask the broker, or somebody behind it: question and answer may each be held up, lost or repeated. A question
        that arrives after its sender has given up has its effect all the same."""
        if not self._connected:
            raise BusUnavailable("not connected to the message broker")
        answered: asyncio.Future[T] = self._loop.create_future()

        def answer(result: T | BusError) -> None:
            if not answered.done():
                if isinstance(result, BusError):
                    answered.set_exception(result)
                else:
                    answered.set_result(result)

        async def arrived() -> None:
            try:
                result: T | BusError = await ask()
            except BusError as error:
                result = error

            def hear() -> None:
                self._post.send(self._process, "in", subject, lambda: answer(result))

            if getattr(result, "lost", False):
                return
            by = getattr(result, "process", None)
            if by is None:
                hear()
            else:
                self._post.send(by, "out", subject, hear)

        self._post.send(self._process, "out", subject, lambda: self._spawn(arrived()))
        try:
            async with asyncio.timeout(timeout_s):
                return await answered
        except TimeoutError as error:
            raise RequestTimeout(f"no answer on {subject} in time") from error

    def _heard(self, subject: str, handler: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """A handler of requests, or of batches of them. Whether they arrive is decided here; whether the answers do
        where they were asked for, since a process that is cut off does not wait for what it said to be heard."""

        async def handled(messages: Message | list[Message]) -> Any:
            several = isinstance(messages, list)
            if not await self._arrives(subject):
                return [self._said(b"", lost=True) for _ in messages] if several else self._said(b"", lost=True)
            try:
                result = await handler(messages)
            except RemoteError as error:
                raise self._said(error) from error
            return [self._said(each) for each in result] if several else self._said(result)

        return handled

    def _said(self, result: bytes | RemoteError, lost: bool = False) -> Any:
        said = Said(result) if isinstance(result, bytes) else SaidNo(result.code, result.message)
        said.process, said.lost = self._process, lost
        return said

    async def _arrives(self, subject: str) -> bool:
        """Wait for something that this process is to hear; returns whether it comes."""
        passed: asyncio.Future[bool] = self._loop.create_future()

        def pass_on(arrived: bool) -> None:
            if not passed.done():
                passed.set_result(arrived)

        self._post.send(self._process, "in", subject, lambda: pass_on(True), lambda: pass_on(False))
        return await passed

    def _own(self, handler: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
        """The handler as part of this process. Where that ends meanwhile, no answer ever comes."""
        context = copy_context()

        async def run(*args: Any) -> T:
            loop = self._loop
            if not self._dead:
                work: Any = handler(*args)
                call: asyncio.Task[T] = loop.create_task(work, context=context.copy())
                await asyncio.wait({call})
                if not (self._dead or call.cancelled()):
                    return call.result()
            return await loop.create_future()

        return run

    def _spawn(self, work: Any) -> None:
        self._loop.create_task(work, context=NOBODY.copy())
