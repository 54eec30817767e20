"""What is seen of a day while it goes on: on which devices workers run and for how long they take to go, and how the
manager says that nodes and job are."""

from __future__ import annotations

import time
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

from ces_client import Client
from ces_common.cgroups import UNIFIED, Group, hierarchies
from ces_common.states import JobState
from ces_testbed.errors import TestbedError

LOOK_S = 0.02  # at groups
SAMPLE_S = 0.25  # of nodes and job


@dataclass
class Device:
    """``frozen_at``: since when its workers are frozen, by the machine's steady clock; None where they are not.
    ``given_back``: how long each time it took from there until none was left. ``occupied``: whether workers run."""

    name: str
    frozen_at: float | None = None
    given_back: list[float] = field(default_factory=list)
    occupied: bool = False

    def seen(self, now: float, running: bool, frozen: bool) -> None:
        """``running``: there are workers; ``frozen``: none of them goes on."""
        self.occupied = running
        if frozen and self.frozen_at is None:
            self.frozen_at = now
        if not running and self.frozen_at is not None:
            self.given_back.append(now - self.frozen_at)
            self.frozen_at = None


class Watch:
    """``cluster``: its name, as control groups of its workers begin; ``job``: None where none runs."""

    def __init__(self, client: Client, cluster: str, nodes: list[str], job: str | None) -> None:
        self._client, self._cluster, self._job = client, cluster, job
        self.devices = [Device(name) for name in nodes]
        self.samples: list[dict[str, Any]] = []
        self._roots = hierarchies()
        self._freezer = Path(self._roots.get("freezer", self._roots.get(UNIFIED, "/sys/fs/cgroup")))

    def until(self, ends: float, begins: float) -> None:
        """Look until then. ``begins``: midnight; both by the machine's steady clock. Raises TestbedError at once where
        nothing can be seen."""
        over = Event()
        with ThreadPoolExecutor(2) as threads:
            looking = [threads.submit(self._look_at_groups, over), threads.submit(self._sample, over, begins)]
            try:
                wait(looking, max(0.0, ends - time.monotonic()), FIRST_EXCEPTION)
            finally:
                over.set()
        for each in looking:
            if (error := each.exception()) is not None:
                raise TestbedError(f"the day could not be watched: {error}") from error

    def _look_at_groups(self, over: Event) -> None:
        while not over.wait(LOOK_S):
            for device in self.devices:
                there = [group for group in self._groups(device.name) if group.members()]
                device.seen(time.monotonic(), bool(there), bool(there) and all(self._frozen(each) for each in there))

    def _groups(self, node: str) -> list[Group]:
        """Of the workers of a lent node."""
        with suppress(OSError):  # some have just gone; what is there is seen at the next look
            folders = list(self._freezer.glob(f"ces-lent/{self._cluster}-{node}-*/*.*"))
            return [Group(self._roots, str(folder.relative_to(self._freezer))) for folder in folders]
        return []

    def _frozen(self, group: Group) -> bool:
        folder = self._freezer / group.name
        try:
            if "freezer" in self._roots:
                return (folder / "freezer.state").read_text().strip() == "FROZEN"
            return "frozen 1" in (folder / "cgroup.events").read_text()
        except OSError:  # it is gone
            return False

    def _sample(self, over: Event, begins: float) -> None:
        while not over.wait(SAMPLE_S):
            lent = sorted(node.name for node in self._client.nodes.list() if node.cpu and not node.reclaimed)
            sample: dict[str, Any] = {"at_s": time.monotonic() - begins, "lent": lent}
            sample["occupied"] = [device.name for device in self.devices if device.occupied]
            if self._job is not None:
                job = self._client.jobs.get(self._job)
                running = job.state is JobState.RUNNING
                progress = (job.placement[0].progress or {}) if job.placement else {}
                sample |= {"size": job.size if running else 0, "step": progress.get("step")}
            self.samples.append(sample)
