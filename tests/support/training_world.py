"""CES as a whole, on time that is told to pass, with programs that train: each step takes its time, rank 0 tells of it,
writes a checkpoint when it is told to end, and begins from that."""

from __future__ import annotations

import asyncio
import json
import math
from collections import defaultdict
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from founded_cluster import founded_cluster
from journaled_machines import JournaledRuntime, Machine, NoLogs, Worker
from whole_world import CONTROLLERS, MANAGERS, SCHEDULERS, WholeWorld

from ces_common.messages.desired import DesiredWorker
from ces_core.registry import get_solver
from ces_edge_agent.ports import NO_SECRETS, LogChunk
from ces_experiments.malleable.mix.program import LOAD_S, SAVE_S, step_s
from ces_manager.database import Database
from ces_manager.duties import Duties
from ces_manager.jobs.speed_notes import note_repeatedly
from ces_manager.measurements import Measurements

START_S = 0.4  # what it takes to start a worker
END_S = 0.05  # and to end one that writes nothing
LOOK_S = 0.1  # between two looks at what the programs have done


@dataclass
class Training:
    """A job's program in all its starts. ``steps``, ``shape``: the arguments of the mix's program; ``said``: by
    allocation; ``told``: the allocation that was told to end last."""

    steps: int
    shape: tuple[float, float, float]
    done: int = 0
    saved: int = 0
    said: dict[str, bytes] = field(default_factory=dict)
    told: str = ""

    @staticmethod
    def of(worker: DesiredWorker) -> Training:
        steps, a, b, c = worker.command[-4:]
        return Training(int(steps), (float(a), float(b), float(c)))

    def go_on(self, allocation: str, size: int, since_s: float) -> None:
        """``since_s``: since the last of its workers has begun."""
        if allocation == self.told:
            return
        trained_s = max(0.0, since_s - LOAD_S)
        done = min(self.steps, self.saved + math.floor(trained_s / step_s(*self.shape, size)))
        if done > self.done:
            self.done = done
            line = json.dumps({"progress": {"step": done}}).encode() + b"\n"
            self.said[allocation] = self.said.get(allocation, b"") + line


@dataclass
class TrainingLogs(NoLogs):
    trainings: Mapping[str, Training]

    async def read(self, allocation: str, offset: int, limit: int) -> LogChunk | None:
        for training in self.trainings.values():
            if allocation in training.said:
                return LogChunk(offset, training.said[allocation][offset : offset + limit])
        return None


class TrainingRuntime(JournaledRuntime):
    def __init__(self, machine: Machine, trainings: dict[str, Training]) -> None:
        super().__init__(machine, TrainingLogs(trainings))
        self._trainings = trainings

    async def start(
        self, worker: DesiredWorker, secrets: Mapping[str, bytes] = NO_SECRETS, checkpoint: IO[bytes] | None = None
    ) -> None:
        await super().start(worker, secrets, checkpoint)
        self._trainings.setdefault(worker.job, Training.of(worker))

    async def stop(self, key: str, grace_s: float) -> None:
        worker = self.machine.workers.get(key)
        if worker is not None and worker.alive:
            await self._stops(worker)
        await super().stop(key, grace_s)

    async def _stops(self, worker: Worker) -> None:
        if worker.desired.rank == 0:
            training = self._trainings[worker.desired.job]
            training.saved, training.told = training.done, worker.desired.allocation
        await asyncio.sleep(SAVE_S if worker.desired.rank == 0 else END_S)


class TrainingWorld(WholeWorld):
    """Everything runs, with one of each service. ``nodes``: see there."""

    def __init__(self, folder: Path, nodes: Mapping[str, int], resize_s: float) -> None:
        super().__init__(folder, founded_cluster(**nodes), nodes, {}, shared=True, eager=False)
        self.resize_s, self.trainings = resize_s, dict[str, Training]()
        self.solvers[SCHEDULERS[0]] = get_solver("greedy")
        for machine in self.machines.values():
            machine.fetch_s = START_S
        for name in (*CONTROLLERS, MANAGERS[0], SCHEDULERS[0], *nodes):
            self.start(name)
        self.flow(0.5)

    def runtime(self, machine: Machine) -> JournaledRuntime:
        return TrainingRuntime(machine, self.trainings)

    def also(self, database: Database, measurements: Measurements, duties: Duties) -> Sequence[Awaitable[None]]:
        return (note_repeatedly(database, measurements.speeds, duties),)

    def train(self) -> None:
        """A moment passes."""
        self.flow(LOOK_S)
        gangs = defaultdict[str, list[tuple[Machine, Worker]]](list)
        for machine in self.machines.values():
            for worker in machine.workers.values():
                if worker.alive:
                    gangs[worker.desired.job].append((machine, worker))
        for job, gang in gangs.items():
            leader = next((worker.desired for _, worker in gang if worker.desired.rank == 0), None)
            if leader is not None and len(gang) == int(leader.env["WORLD_SIZE"]):
                began = max(worker.run.began for _, worker in gang)
                training = self.trainings[job]
                training.go_on(leader.allocation, len(gang), self.loop.time() - began)
                if training.done == training.steps:
                    for machine, worker in gang:
                        machine.end(worker, 0)
