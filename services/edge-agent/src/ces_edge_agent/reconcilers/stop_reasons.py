"""Which workers the agent told to end, and why. Kept on disk: after a restart of the agent, too, such a worker does not
count as successful, even if it exited with 0."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

import structlog

from ces_edge_agent.files import write_atomically

log = structlog.get_logger()


class StopReasons:
    """``by_worker``: worker key -> why it was told to end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.by_worker: Mapping[str, str] = self._load()

    def add(self, why: str, *keys: str) -> None:
        """Record stops. To be called before the workers are told to end."""
        self._save({**self.by_worker, **dict.fromkeys(keys, why)})

    def keep_only(self, present: Collection[str]) -> None:
        """Forget workers that no longer exist."""
        self._save({key: why for key, why in self.by_worker.items() if key in present})

    def _save(self, reasons: dict[str, str]) -> None:
        if reasons == self.by_worker:
            return
        self.by_worker = reasons
        try:
            write_atomically(self._path, json.dumps(reasons))
        except OSError as error:  # stopping the worker matters more than the record
            log.warning("a restart would not know which workers were stopped", error=str(error))

    def _load(self) -> dict[str, str]:
        try:
            return {str(key): str(why) for key, why in json.loads(self._path.read_text()).items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError) as error:
            log.warning("unreadable notes on stopped workers ignored", path=str(self._path), error=str(error))
            return {}
