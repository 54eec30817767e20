"""Deadlines in the log: nobody who was refused ever gets a plan, and how many were kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any


class Deadlines:
    """``kept`` and ``missed``: jobs with a deadline that succeeded in time, and later. One that fails or is cancelled
    does neither. ``checked``: refusals, and plans of jobs with a deadline."""

    def __init__(self) -> None:
        self.kept = self.missed = self.checked = 0
        self._due: dict[str, datetime] = {}
        self._refused: set[str] = set()
        self._placed: set[str] = set()

    def read(self, aggregate: str, kind: str, data: Mapping[str, Any], time: str) -> Iterator[str]:
        """What is wrong with an event."""
        match aggregate, kind:
            case "job", "deadline":
                name = data["job"]
                self._due[name] = datetime.fromisoformat(data["deadline_at"])
                if data.get("refusal"):
                    self.checked += 1
                    self._refused.add(name)
                    if name in self._placed:
                        yield f"job {name} is refused although it had a plan"
            case "plan", "committed":
                self._placed.add(data["job"])
                self.checked += data["job"] in self._due
                if data["job"] in self._refused:
                    yield f"job {data['job']} was refused, and has a plan"
            case "job", "succeeded" if data["job"] in self._due:
                in_time = datetime.fromisoformat(time) <= self._due[data["job"]]
                self.kept += in_time
                self.missed += not in_time
