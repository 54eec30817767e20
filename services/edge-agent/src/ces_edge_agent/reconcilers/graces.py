"""How long workers have from SIGTERM to SIGKILL, where they have a time of their own. Kept on disk: a worker that is
desired no longer is in no document, and has its time after a restart of the agent, too."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import structlog
from pydantic import TypeAdapter

from ces_common.messages.bounds import Number
from ces_common.messages.desired import DesiredWorker
from ces_edge_agent.files import write_atomically

log = structlog.get_logger()
_RECORD = TypeAdapter(dict[str, Number])


class Graces:
    """``by_worker``: worker key -> seconds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.by_worker: Mapping[str, float] = self._load()

    def see(self, desired: Collection[DesiredWorker], present: Collection[str]) -> None:
        """Record those of the desired workers, before any is started; forget all that are neither desired nor
        present."""
        graces = {key: grace for key, grace in self.by_worker.items() if key in present}
        graces |= {worker.key: worker.grace for worker in desired if worker.grace is not None}
        if graces == self.by_worker:
            return
        self.by_worker = graces
        try:
            write_atomically(self._path, _RECORD.dump_json(graces).decode())
        except OSError as error:  # workers matter more than the record
            log.warning("a restart would not know how long workers have to end", error=str(error))

    def _load(self) -> dict[str, float]:
        try:
            return _RECORD.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            log.warning("unreadable notes on how long workers have to end ignored", error=str(error))
            return {}
