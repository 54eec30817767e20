"""The node's desired state on disk, so that an agent that restarts without the manager knows it."""

from __future__ import annotations

from pathlib import Path
from typing import Generic, TypeVar

import structlog

from ces_common.messages.desired import DesiredDocument
from ces_edge_agent.files import write_atomically

log = structlog.get_logger()
Document = TypeVar("Document", bound=DesiredDocument)


class OutdatedDocument(ValueError):
    """The controller has not yet said what follows from what the manager decided."""


class StoredDocument(Generic[Document]):
    """The newest document of one kind. ``current`` is None until the first one arrives."""

    def __init__(self, path: Path, model: type[Document], node: str) -> None:
        self._path, self._model, self._node = path, model, node
        self.current: Document | None = self._load()

    def offer(self, raw: bytes) -> bool:
        """Store a document that is newer than the current one, or differs at the same generation (from a controller of
        another version); returns whether it was stored. Malformed, older and other nodes' documents are ignored."""
        try:
            document = self._model.model_validate_json(raw)
        except ValueError as error:
            log.warning("malformed desired state ignored", error=str(error))
            return False
        if document.node != self._node:
            log.warning("another node's desired state ignored", of=document.node)
            return False
        old = self.current
        if old is not None and old.epoch == document.epoch and old.generation > document.generation:
            return False
        if document == old:
            return False
        try:
            write_atomically(self._path, document.model_dump_json())
        except OSError as error:  # do not act on a document that a restart would forget
            log.error("the desired state cannot be kept on disk", path=str(self._path), error=str(error))
            return False
        self.current = document
        return True

    def check_reached(self, epoch: str, generation: int) -> None:
        """Raises OutdatedDocument unless the current document is of this epoch and generation, or later. A generation
        of 0 asks for nothing."""
        if generation == 0:
            return
        document = self.current
        if document is None or document.epoch != epoch or document.generation < generation:
            held = "none" if document is None else f"generation {document.generation} of {document.epoch!r}"
            raise OutdatedDocument(
                f"what is desired must be of generation {generation} of {epoch!r} at least, and here is {held}"
            )

    def _load(self) -> Document | None:
        try:
            document = self._model.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            log.warning("unreadable desired state on disk ignored", path=str(self._path), error=str(error))
            return None
        if document.node != self._node:
            log.warning("another node's desired state on disk ignored", path=str(self._path), of=document.node)
            return None
        return document
