"""Which workers were told to end, and why: on disk, so that an agent that starts again still knows that such a worker
has not done its work, however politely it ended."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

import structlog

from ces_edge_agent.files import write_atomically

log = structlog.get_logger()


class Stops:
    """``told``: worker key -> why."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.told: Mapping[str, str] = self._load()

    def note(self, key: str, why: str) -> None:
        """To be called before the worker is told."""
        self._keep({**self.told, key: why})

    def forget_others(self, present: Collection[str]) -> None:
        """Workers that are gone are of no more interest."""
        self._keep({key: why for key, why in self.told.items() if key in present})

    def _keep(self, told: dict[str, str]) -> None:
        if told == self.told:
            return
        self.told = told
        try:
            write_atomically(self._path, json.dumps(told))
        except OSError as error:  # a worker that must end does not live on for want of a note
            log.warning("a restart would not know which workers were stopped", error=str(error))

    def _load(self) -> dict[str, str]:
        try:
            return {str(key): str(why) for key, why in json.loads(self._path.read_text()).items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError) as error:
            log.warning("unreadable notes on stopped workers ignored", path=str(self._path), error=str(error))
            return {}
