"""Managers of regions, played: what their federation services ask, and are answered."""

from __future__ import annotations

from typing import Any

from region_worlds import Region

from ces_common.bus.port import Message
from ces_common.jobfile import JobFile
from ces_common.messages.base import Message as Wire
from ces_common.messages.regions import (
    BidAnswer,
    Decision,
    FateAnswer,
    GuestFile,
    GuestJobQuery,
    HoldQuery,
    OfferedJob,
    Refusal,
    ReportedJobs,
)

FILE = JobFile.model_validate(
    {"name": "x", "tenant": "red", "priority": 90, "regions": ["any"], "tasks": [{"name": "w", "command": ["true"]}]}
)
OFFERED = OfferedJob(job="job-1", attempt=1, file=FILE)
REMOTE = "01J0000000000000000REMOTE1"
HELD = FateAnswer(fate="held", remote=REMOTE)
AWAY = {"job": "job-1", "attempt": 1, "remote": REMOTE}


class Manager:
    """Of one region. ``asked``: what it was asked, in order."""

    def __init__(self, region: Region) -> None:
        self.region, self.asked = region, list[tuple[str, Any]]()

    async def answers(self, operation: str, model: type[Wire], *answers: Wire | Exception) -> None:
        """One after the other; the last one again and again."""
        left = list(answers)

        async def answer(message: Message) -> bytes:
            self.asked.append((operation, model.model_validate_json(message.data)))
            said = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(said, Exception):
                raise said
            return said.encode()

        await self.region.manager_says(f"region-{operation}", answer)

    def operations(self) -> list[str]:
        return [operation for operation, _ in self.asked]

    def last(self, operation: str) -> Any:
        return [said for name, said in self.asked if name == operation][-1]


async def owner(region: Region, composite: float = 0.5, *holds: Wire | Exception) -> Manager:
    """A manager that has a place for every job; ``holds``: its answers to holds, one after the other."""
    manager = Manager(region)
    await manager.answers("bid", GuestFile, BidAnswer(feasible=True, composite=composite))
    await manager.answers("hold", HoldQuery, *(holds or (HELD,)))
    await manager.answers("commit", GuestJobQuery, FateAnswer(fate="committed", remote=REMOTE))
    await manager.answers("release", GuestJobQuery, FateAnswer(fate="released"))
    return manager


async def home(region: Region, refusal: str | None = None) -> Manager:
    """A manager that takes note of where its jobs go; ``refusal``: why it does not."""
    manager = Manager(region)
    await manager.answers("decide", Decision, Refusal(refusal=refusal))
    await manager.answers("report", ReportedJobs, Refusal())
    return manager
