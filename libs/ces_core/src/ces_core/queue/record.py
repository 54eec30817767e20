"""A record of the queue: everything that went into each cycle and came out of it, as one JSON line per cycle.

Only changes since the previous line are written, so a line grows with what changed and not with the cluster. On another
cluster everything is written again.

:mod:`ces_sim.replay` decides the recorded cycles again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ces_core.model.instance import read_instance, write_instance
from ces_core.model.parts import Task
from ces_core.model.problem import Cluster, Problem
from ces_core.queue.jobs import RunningJob, WaitingJob
from ces_core.queue.ledger import LINK, Cell, Ledger
from ces_core.queue.parameters import Parameters, Tenant
from ces_core.queue.reservations import Preempted
from ces_core.queue.state import Decisions, Memory, Start, State, carried

Record = Callable[[State, Parameters, Mapping[str, int], Decisions], None]
"""Called after each cycle with its input, the solver's seed for each waiting job, and the decisions."""
Line = dict[str, Any]


class Recorder:
    """Appends a line to a file after each cycle. Raises OSError if the file cannot be written."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._cluster: Cluster | None = None
        self._parameters: Parameters | None = None
        self._memory = Memory()
        self._jobs: dict[str, tuple[WaitingJob, int]] = {}
        self._held: dict[str, tuple[RunningJob, Mapping[Cell, float]]] = {}

    def __call__(self, state: State, parameters: Parameters, seeds: Mapping[str, int], decisions: Decisions) -> None:
        line: Line = {"now_s": state.now_s, "freed": state.freed}
        if state.changed:
            line["changed"] = sorted(state.changed)
        line |= _memory_line(state.memory, self._memory)
        if self._cluster is None or not _same(self._cluster, state.ledger.base):
            line["cluster"] = _cluster_line(state.ledger.base)
            self._cluster = state.ledger.base
            self._jobs, self._held = {}, {}
        if parameters != self._parameters:
            line["parameters"] = _parameters_line(parameters)
            self._parameters = parameters
        jobs = {job.name: (job, seeds[job.name]) for job in state.waiting}
        held = {job.name: (job, state.ledger.held(job.name)) for job in state.running}
        line["jobs"] = [_job_line(*entry) for name, entry in jobs.items() if not _known(self._jobs.get(name), entry)]
        line["held"] = [_held_line(*entry) for name, entry in held.items() if self._held.get(name) != entry]
        line["waiting"], line["running"] = list(jobs), list(held)
        line["starts"] = [start_line(start) for start in decisions.starts]
        if decisions.preempted:
            line["preempted"] = preempted_line(decisions.preempted)
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        self._jobs, self._held, self._memory = self._jobs | jobs, held, decisions.memory

    def close(self) -> None:
        self._file.close()


@dataclass(frozen=True, eq=False)
class Recorded:
    """One cycle of a record. ``state`` has an empty memory; :meth:`with_memory` gives it the real one. ``starts`` has
    the format of :func:`start_line`, ``preempted`` that of :func:`preempted_line`. ``reserved``: jobs whose reservation
    still stood, where not all of the previous cycle's did."""

    state: State
    parameters: Parameters
    seeds: Mapping[str, int]
    starts: Sequence[Line]
    memory: Literal["same", "carried", "empty"]
    preempted: Line
    reserved: Sequence[str] | None = None

    def with_memory(self, before: Memory) -> State:
        """The state with the memory that the previous cycle left (``before``)."""
        if self.memory == "empty":
            return self.state
        if self.memory == "carried":
            before = carried(before, self.state.waiting, self.state.ledger.base)
        if self.reserved is not None:
            standing = tuple(each for each in before.reservations if each.job in self.reserved)
            before = replace(before, reservations=standing)
        return replace(self.state, memory=before)


def read_record(path: Path) -> Iterator[Recorded]:
    """The cycles of a record, in order. Raises OSError, and ValueError or KeyError if the file is no record."""
    parameters = Parameters()
    cluster: Cluster | None = None
    ground: Line = {}
    jobs: dict[str, WaitingJob] = {}
    seeds: dict[str, int] = {}
    held: dict[str, tuple[RunningJob, dict[Cell, float]]] = {}
    with path.open(encoding="utf-8") as file:
        for text in file:
            line = json.loads(text)
            if "cluster" in line:
                ground = line["cluster"]
                cluster = read_instance(ground).cluster
                jobs, held = {}, {}
            if cluster is None:
                raise ValueError(f"{path} does not begin with a cluster")
            if "parameters" in line:
                parameters = _parameters(line["parameters"])
            for entry in line["jobs"]:
                seeds[entry["name"]] = entry.pop("seed")
                jobs[entry["name"]] = _job(entry, ground, cluster)
            for entry in line["held"]:
                cells = {(int(resource), int(index)): amount for resource, index, amount in entry.pop("cells")}
                held[entry["name"]] = RunningJob(**entry), cells
            ledger = Ledger.of(cluster, {name: held[name][1] for name in line["running"]})
            waiting, running = [jobs[name] for name in line["waiting"]], [held[name][0] for name in line["running"]]
            changed = frozenset(line.get("changed", ()))
            state = State(line["now_s"], ledger, waiting, running, line["freed"], changed=changed)
            memory, reserved = line.get("memory", "same"), line.get("reserved")
            preempted = line.get("preempted", {})
            yield Recorded(state, parameters, dict(seeds), line["starts"], memory, preempted, reserved)


def start_line(start: Start) -> Line:
    """A started job and its plan."""
    flows = [flow.to_dict() for flow in start.plan.flows]
    return {"job": start.job, "assignments": dict(start.plan.assignments), "flows": flows}


def preempted_line(preempted: Mapping[str, Preempted]) -> Line:
    """Waiting job -> the jobs that make way for it."""
    return {job: {"suspended": [*each.suspended], "stopped": [*each.stopped]} for job, each in preempted.items()}


def _memory_line(now: Memory, before: Memory) -> Line:
    """How what a cycle remembers differs from what the one before left. Who makes room may have changed its mind since:
    then only reservations are fewer, and what was refused stays known."""
    line: Line = {}
    reserved = [each.job for each in now.reservations]
    if now.refusals is not before.refusals or now.unmoved is not before.unmoved:
        line["memory"] = "carried" if reserved else "empty"
    if reserved != [each.job for each in before.reservations]:
        line["reserved"] = reserved
    return line


def _same(one: Cluster, other: Cluster) -> bool:
    """Whether two problems are the same before anything is placed."""
    names = ("node_capacity", "node_used", "link_capacity", "link_used", "medium_capacity")
    same = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)
    return one is other or (one.topology is other.topology and same)


def _cluster_line(cluster: Cluster) -> Line:
    return write_instance(Problem.make(cluster, [Task("nobody")]))


def _known(before: tuple[WaitingJob, int] | None, now: tuple[WaitingJob, int]) -> bool:
    return before is not None and (before[0] is now[0] or _job_line(*before) == _job_line(*now))


def _job_line(job: WaitingJob, seed: int) -> Line:
    """A waiting job without the cluster, which has its own line."""
    asked = {key: value for key, value in write_instance(job.problem).items() if key in ("job", "weights")}
    said = {"name": job.name, "submitted_s": job.submitted_s, "priority": job.priority, "tenant": job.tenant}
    how = {"basis": job.problem.basis, "paths": job.problem.paths, "seed": seed, "expected_s": job.expected_s}
    return asked | said | how | ({"pressing": True} if job.pressing else {})


def _job(entry: Line, ground: Line, cluster: Cluster) -> WaitingJob:
    asked = ground | {key: entry.pop(key) for key in ("job", "weights")}
    problem = read_instance(asked, basis=entry.pop("basis"), paths=entry.pop("paths"))
    return WaitingJob(problem=replace(problem, cluster=cluster), **entry)


def _held_line(job: RunningJob, cells: Mapping[Cell, float]) -> Line:
    """Without cards, which a record does not tell of."""
    return asdict(job) | {"cells": [[*cell, amount] for cell, amount in cells.items() if cell[0] >= LINK]}


def _parameters_line(parameters: Parameters) -> Line:
    entry = {each.name: getattr(parameters, each.name) for each in fields(parameters)}
    tenants = [
        {
            "name": tenant.name,
            "weight": tenant.weight,
            "guaranteed": dict(tenant.guaranteed),
            "quota": dict(tenant.quota),
        }
        for tenant in parameters.tenants
    ]
    return entry | {"tenants": tenants}


def _parameters(entry: Line) -> Parameters:
    tenants = tuple(Tenant(**tenant) for tenant in entry["tenants"])
    known = {each.name for each in fields(Parameters)}
    if entry.keys() != known:
        unlike = ", ".join(sorted(entry.keys() ^ known))
        raise ValueError(f"the record is of another version of CES: its parameters differ in {unlike}")
    return Parameters(**entry | {"tenants": tenants})
