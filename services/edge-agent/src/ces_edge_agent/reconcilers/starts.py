"""Which workers were started here, and how they ended, where that was seen. Kept on disk: a worker that is gone without
a trace counts as ended, and its incarnation is not started again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import structlog
from pydantic import TypeAdapter

from ces_common.messages.reports import WorkerStatus
from ces_edge_agent.files import write_atomically

log = structlog.get_logger()
VANISHED_EXIT = 255  # its own exit code is not known
VANISHED = "vanished: it was started here, and nothing is left of it"
_RECORD = TypeAdapter(dict[str, WorkerStatus | None])


class Starts:
    """``by_worker``: worker key -> how it ended; None where that was not seen. A start is noted once it has come about,
    so that an agent which ends before that tries it again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.by_worker: Mapping[str, WorkerStatus | None] = self._load()

    def add(self, key: str) -> None:
        """Record that a worker was started."""
        if key not in self.by_worker:
            self._save({**self.by_worker, key: None})

    def see(self, observed: Mapping[str, WorkerStatus], relevant: Collection[str]) -> None:
        """Record what is observed, of the relevant workers; forget all others."""
        seen = {key: self.by_worker[key] for key in self.by_worker if key in relevant}
        for key, status in observed.items():
            if key in relevant and status.state != "starting":
                seen[key] = status if status.state == "exited" else None
        self._save(seen)

    def gone(self, key: str) -> WorkerStatus:
        """The status of a worker that was started and is not there any more."""
        ended = self.by_worker[key]
        if ended is not None:
            return ended
        allocation, _, incarnation = key.rpartition(".")
        return WorkerStatus(
            allocation=allocation,
            incarnation=int(incarnation),
            state="exited",
            exit_code=VANISHED_EXIT,
            reason=VANISHED,
        )

    def _save(self, record: dict[str, WorkerStatus | None]) -> None:
        if record == self.by_worker:
            return
        self.by_worker = record
        try:
            write_atomically(self._path, _RECORD.dump_json(record, exclude_none=False).decode())
        except OSError as error:  # workers matter more than the record
            log.warning("a restart would not know which workers were started", error=str(error))

    def _load(self) -> dict[str, WorkerStatus | None]:
        try:
            return _RECORD.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            log.warning("unreadable notes on started workers ignored", path=str(self._path), error=str(error))
            return {}
