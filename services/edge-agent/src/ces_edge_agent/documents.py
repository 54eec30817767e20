"""The node's wanted-state documents: the newest of each kind, kept on disk so that the agent goes on without its
master."""

from __future__ import annotations

from pathlib import Path
from typing import Generic, TypeVar

import structlog

from ces_common.messages.wanted import WantedDocument
from ces_edge_agent.files import write_atomically

log = structlog.get_logger()
W = TypeVar("W", bound=WantedDocument)


class Kept(Generic[W]):
    """One document. ``current`` is None until the first one arrives."""

    def __init__(self, path: Path, model: type[W], node: str) -> None:
        self._path, self._model, self._node = path, model, node
        self.current: W | None = self._load()

    def offer(self, raw: bytes) -> bool:
        """Take a document in if it is newer than what is known, or differs at the same generation (a controller of
        another version made it); True if it was. A malformed one, another node's or an older one is ignored."""
        try:
            document = self._model.model_validate_json(raw)
        except ValueError as error:
            log.warning("malformed wanted state ignored", error=str(error))
            return False
        if document.node != self._node:
            log.warning("another node's wanted state ignored", of=document.node)
            return False
        old = self.current
        if old is not None and old.epoch == document.epoch and old.generation > document.generation:
            return False
        if document == old:
            return False
        try:
            write_atomically(self._path, document.model_dump_json())
        except OSError as error:  # what a restart would forget must not be acted upon
            log.error("the wanted state cannot be kept on disk", path=str(self._path), error=str(error))
            return False
        self.current = document
        return True

    def _load(self) -> W | None:
        try:
            document = self._model.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            log.warning("unreadable wanted state on disk ignored", path=str(self._path), error=str(error))
            return None
        if document.node != self._node:
            log.warning("another node's wanted state on disk ignored", path=str(self._path), of=document.node)
            return None
        return document
