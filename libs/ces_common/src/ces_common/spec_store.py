"""The store of desired-state documents: each node's document in the key-value bucket, kept as planned."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from time import monotonic
from typing import Generic, TypeVar

import structlog
from prometheus_client import Counter

from ces_common.at_once import at_once
from ces_common.bus.port import Bus, PayloadTooLarge, Superseded
from ces_common.messages.desired import DesiredDocument

log = structlog.get_logger()
WRITTEN = Counter("ces_desired_documents_written_total", "Documents of nodes' desired state written", ["kind"])
NO_CONTENT = frozenset({"generation", "traces"})
TRIES = 3  # to write a document that another controller writes as well


W = TypeVar("W", bound=DesiredDocument)
Clock = Callable[[], float]


def due(planned: Mapping[str, W], known: Mapping[str, W | None], at_least: Mapping[str, int]) -> list[W]:
    """The documents to write: their content differs from what is known to be there, or they must show a newer
    generation (``at_least``, per node) although nothing else in them changed. Pure."""
    documents = []
    for node, document in planned.items():
        old = known.get(node)
        if old is None or not _same_content(old, document) or old.generation < at_least.get(node, 0):
            documents.append(document)
    return documents


def _generation(document: W | None) -> int:
    return -1 if document is None else document.generation


def _same_content(one: W, other: W) -> bool:
    fields = (name for name in type(one).model_fields if name not in NO_CONTENT)
    pairs = ((getattr(one, name), getattr(other, name)) for name in fields)
    return all(a is b or a == b for a, b in pairs)  # most are the very same lists: no need to look into them


def only_less(old: W, new: W) -> bool:
    """Whether a document says nothing that the old one does not: things were taken away from its lists. What is left
    must be the very same objects; an equal copy counts as new. Pure."""
    for name in type(new).model_fields:
        then, now = getattr(old, name), getattr(new, name)
        if name in NO_CONTENT or then is now:
            continue
        if not isinstance(now, list):
            if then != now:
                return False
        elif len(now) > len(then) or not {id(each) for each in now} <= {id(each) for each in then}:
            return False
    return True


class SpecStore(Generic[W]):
    """The documents of one kind in the bucket, with a cache of what was last written or read. The cache is dropped
    after ``trust_s``: the bucket may have been lost, or a document overwritten. A document from which things were only
    taken away waits up to ``linger_s`` for something new that goes with it."""

    def __init__(
        self,
        bus: Bus,
        kind: str,
        model: type[W],
        key: Callable[[str], str],
        trust_s: float,
        clock: Clock = monotonic,
        *,
        linger_s: float = 0.0,
    ) -> None:
        self._bus, self._kind, self._model, self._key = bus, kind, model, key
        self._trust_s, self._linger_s, self._clock = trust_s, linger_s, clock
        self._lingering: dict[str, float] = {}  # node -> until when its document waits
        self._known: dict[str, W | None] = {}
        self._revisions: dict[str, int] = {}  # of the known ones
        self._planned: dict[str, W] = {}  # the very documents as planned that the known ones were written of
        self._written: set[str] = set()  # nodes that may have a document
        self._looked = False  # for documents that an earlier run wrote
        self._since = clock()

    def forget(self) -> None:
        """Drop the cache: everything is read again next time."""
        self._known.clear()
        self._since = self._clock()

    async def put(
        self,
        planned: Mapping[str, W],
        generation: int,
        at_least: Mapping[str, int] | None = None,
        traces: Callable[[W], dict[str, str] | None] = lambda _: None,
    ) -> list[str]:
        """Bring the bucket in line with the plan, stamping what is written with ``generation`` and with its ``traces``;
        returns the nodes whose document was written. One that is too large to be sent stays as it was; the others go
        on."""
        if self._clock() - self._since > self._trust_s:
            self.forget()
        if not self._looked:  # a node may have been forgotten while nobody looked after its documents
            self._written |= {key.partition(".")[0] for key in await self._bus.kv_keys(self._kind)}
            self._looked = True
        self._written |= planned.keys()
        await at_once(self._read, sorted(planned.keys() - self._known.keys()))
        floors = at_least or {}
        news = {
            node: document
            for node, document in planned.items()
            if self._planned.get(node) is not document or _generation(self._known.get(node)) < floors.get(node, 0)
        }
        changed = due(news, self._known, floors)
        now = [each for each in self._not_lingering(changed, floors) if not self._is_outdated(each, generation)]
        stamped = [each.model_copy(update={"generation": generation, "traces": traces(each)}) for each in now]
        stored = await at_once(self._write, stamped)
        written = [document.node for document, done in zip(stamped, stored, strict=True) if done]
        left = {document.node for document in changed} - set(written)
        self._planned.update((node, document) for node, document in news.items() if node not in left)
        WRITTEN.labels(self._kind).inc(len(written))
        if written:
            log.info("desired state written", kind=self._kind, nodes=written)
        await self._drop(self._written - planned.keys())
        return written

    def due_s(self) -> float:
        """After how many seconds a document has waited long enough; infinite where none waits."""
        return max(0.0, min(self._lingering.values(), default=math.inf) - self._clock())

    def _not_lingering(self, changed: Iterable[W], floors: Mapping[str, int]) -> list[W]:
        """Those to be written now. The others are remembered."""
        now, before, self._lingering = self._clock(), self._lingering, {}
        urgent = []
        for document in changed:
            node, old = document.node, self._known.get(document.node)
            until = before.get(node, now + self._linger_s)
            needed = _generation(old) < floors.get(node, 0)
            if old is not None and not needed and now < until and only_less(old, document):
                self._lingering[node] = until
            else:
                urgent.append(document)
        return urgent

    def _is_outdated(self, document: W, generation: int) -> bool:
        """Whether another controller has written a document of a later state; then this one has to read it, too."""
        known = self._known.get(document.node)
        return known is not None and known.epoch == document.epoch and known.generation > generation

    async def _read(self, node: str) -> None:
        entry = await self._bus.kv_entry(self._key(node))
        self._planned.pop(node, None)
        self._known[node], self._revisions[node] = self._parse(node, entry.value), entry.revision

    async def _write(self, document: W) -> bool:
        """Returns whether it is there now."""
        node = document.node
        for _ in range(TRIES):
            try:
                revision = await self._bus.kv_put(self._key(node), document.encode(), after=self._revisions.get(node))
            except PayloadTooLarge as error:  # no other node may have to wait for it
                log.error("a desired state is too large", node=node, kind=self._kind, error=str(error))
                return False
            except Superseded:  # by another controller, or by this one without hearing that it was stored
                log.info("a desired state has changed meanwhile", node=node, kind=self._kind)
                await self._read(node)
                if self._is_outdated(document, document.generation):
                    return False
            else:
                self._known[node], self._revisions[node] = document, revision
                return True
        return False

    async def _drop(self, nodes: Iterable[str]) -> None:
        for node in sorted(nodes):
            await self._bus.kv_delete(self._key(node))
            for memory in (self._known, self._planned, self._revisions):
                memory.pop(node, None)
            self._written.discard(node)
            log.info("desired state of a forgotten node removed", kind=self._kind, node=node)

    def _parse(self, node: str, raw: bytes | None) -> W | None:
        if raw is None:
            return None
        try:
            return self._model.model_validate_json(raw)
        except ValueError as error:
            log.warning("unreadable desired state is replaced", node=node, kind=self._kind, error=str(error))
            return None
