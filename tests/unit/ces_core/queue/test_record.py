"""A run on record, decided again: the same jobs start in the same order with the same plans."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from queue_desk import PLAIN, one_node, solve, wants
from simulated_runs import parameters, workloads

from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.parts import Node, Task
from ces_core.model.problem import Cluster
from ces_core.queue.cycle import cycle
from ces_core.queue.ledger import Ledger
from ces_core.queue.parameters import Parameters, Tenant
from ces_core.queue.record import Recorder, read_record
from ces_core.queue.state import Memory, State, carried
from ces_core.registry import get_solver
from ces_sim.arrivals import TimedJob, poisson
from ces_sim.cluster import simulate
from ces_sim.queue_policy import Desk
from ces_sim.replay import Replayed, replay

GREEDY, SEARCH = get_solver("greedy"), get_solver("search")


@dataclass
class OnRecord:
    """CES-Multi as the service runs it: cycle after cycle, each of them recorded. ``seen``: called before each."""

    parameters: Parameters
    record: Recorder
    seen: Callable[[Desk], None] = lambda _: None
    name: str = "on-record"

    def serve(self, desk: Desk) -> None:
        more = True
        while more:
            self.seen(desk)
            state = State(desk.now, desk.ledger, desk.queue, desk.running, desk.freed, desk.memory)
            decided = cycle(state, self.parameters, desk.solve, desk.solve_fragmentation_aware)
            self.record(state, self.parameters, {job.name: 0 for job in state.waiting}, decided)
            desk.memory = decided.memory
            jobs = {job.name: job for job in desk.waiting}
            for name, reason in decided.refused.items():
                desk.refuse(name, reason)
            for start in decided.starts:
                desk.start(jobs[start.job], start.plan)
            for name in [name for each in decided.preempted.values() for name in each.names]:
                desk.stop(name)
            more = bool(decided.starts) or decided.more or bool(decided.preempted)


def recorded(
    path: Path, cluster: Cluster, jobs: Sequence[TimedJob], parameters: Parameters, **how: Any
) -> list[Replayed]:
    """A run's cycles, as they were and as they are when they are decided again."""
    record = Recorder(path)
    simulate(cluster, jobs, GREEDY, OnRecord(parameters, record, **how))
    record.close()
    return list(replay(path, GREEDY))


@settings(max_examples=40, deadline=None)
@given(given_=workloads(), parameters=parameters, margin=st.sampled_from([None, 20]))
def test_what_is_on_record_is_decided_alike(
    given_: tuple[Cluster, list[TimedJob]], parameters: Parameters, margin: int | None
) -> None:
    with TemporaryDirectory() as folder:
        cycles = recorded(Path(folder) / "record", *given_, replace(parameters, preemption=margin))
    assert cycles
    for each in cycles:
        assert each.replayed == each.recorded
        then, now = each.made_room
        assert then == now


def test_who_was_to_make_room_is_on_record(tmp_path: Path) -> None:
    cluster = Cluster.make([Node("n", cpu=4)], [])
    jobs = [
        TimedJob("low", 0.0, 10.0, (Task("t", cpu=4),), (), priority=0),
        TimedJob("urgent", 6.0, 3.0, (Task("t", cpu=1),), (), priority=90),
    ]
    cycles = recorded(tmp_path / "record", cluster, jobs, Parameters(preemption=20))
    made_room = [each.made_room for each in cycles if each.made_room[0]]
    assert made_room == [({"urgent": {"suspended": [], "stopped": ["low"]}},) * 2]


def test_what_counted_room_for_later_jobs_is_decided_alike(tmp_path: Path) -> None:
    cluster = read_instance(random_instance("thesis", 3, nodes=8)).cluster
    jobs = [replace(job, expected_s=job.duration_s) for job in poisson(20, 0.5, 20, (1, 2), 5)]
    plans = []
    for crowded in (0.0, None):
        path, record = tmp_path / f"{crowded}", Recorder(tmp_path / f"{crowded}")
        simulate(cluster, jobs, SEARCH, OnRecord(Parameters(crowded=crowded), record))
        record.close()
        cycles = list(replay(path, SEARCH))
        assert [each.replayed for each in cycles] == [each.recorded for each in cycles]
        plans.append([each.recorded for each in cycles])
    assert plans[0] != plans[1]


def test_a_record_of_another_version_is_refused(tmp_path: Path, run: tuple[Cluster, list[TimedJob]]) -> None:
    path = tmp_path / "record"
    recorded(path, *run, IMPATIENT)
    path.write_text(path.read_text().replace('"crowded"', '"packing"'))
    with pytest.raises(ValueError, match="another version of CES: its parameters differ in crowded, packing"):
        list(read_record(path))


@pytest.fixture
def run() -> tuple[Cluster, list[TimedJob]]:
    """A crowded cluster: jobs wait, and some are overdue."""
    cluster = read_instance(random_instance("scarce", 3, nodes=4)).cluster
    jobs = poisson(12, 1.0, 20, (1, 2, 3), 5, regime="scarce")
    return cluster, [replace(job, expected_s=job.duration_s, tenant=f"t{i % 2}") for i, job in enumerate(jobs)]


IMPATIENT = Parameters(bound_s=10, tenants=(Tenant("t0", 2, {"cpu": 0.1}, {"cpu": 0.9}), Tenant("t1")))


def test_a_record_tells_no_more_than_what_has_changed(tmp_path: Path, run: tuple[Cluster, list[TimedJob]]) -> None:
    cycles = recorded(tmp_path / "record", *run, IMPATIENT)
    lines = [json.loads(line) for line in (tmp_path / "record").read_text().splitlines()]
    assert len(lines) == len(cycles) > len(run[1])
    assert ["cluster" in line for line in lines] == ["parameters" in line for line in lines]
    assert [i for i, line in enumerate(lines) if "cluster" in line] == [0]
    assert sorted(told["name"] for line in lines for told in line["jobs"]) == sorted(job.name for job in run[1])
    assert sum(len(line["held"]) for line in lines) == sum(len(line["starts"]) for line in lines)
    assert all(told.parameters == IMPATIENT for told in read_record(tmp_path / "record"))


def test_a_change_of_any_decision_is_seen(tmp_path: Path, run: tuple[Cluster, list[TimedJob]]) -> None:
    """Else a replay would prove nothing."""
    path = tmp_path / "record"
    recorded(path, *run, IMPATIENT)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["parameters"]["window"] = 1
    lines[0]["parameters"]["fit"] = 0.0
    lines[0]["parameters"]["overdue"] = 0.0
    path.write_text("\n".join(map(json.dumps, lines)))
    assert any(each.replayed != each.recorded for each in replay(path, GREEDY))


def test_a_memory_that_was_lost_or_carried_is_so_again(tmp_path: Path, run: tuple[Cluster, list[TimedJob]]) -> None:
    """As when the service starts anew, or goes on with another cluster."""
    looks = 0

    def disturb(desk: Desk) -> None:
        nonlocal looks
        looks += 1
        if looks % 5 == 0:
            desk.memory = Memory()
        elif looks % 2:
            desk.memory = carried(desk.memory, desk.queue, desk.ledger.base)

    cycles = recorded(tmp_path / "record", *run, IMPATIENT, seen=disturb)
    memories = [told.memory for told in read_record(tmp_path / "record")]
    assert set(memories[4::5]) == {"empty"}
    assert set(memories) == {"same", "carried", "empty"}
    assert all(each.replayed == each.recorded for each in cycles)


@pytest.mark.parametrize("pressing", [True, False])
def test_who_must_begin_now_is_on_record(pressing: bool, tmp_path: Path) -> None:
    cluster = one_node()
    job = wants(cluster, "j", 1, pressing=pressing)
    state = State(0.0, Ledger(cluster), [job], [], 0)
    record = Recorder(tmp_path / "record")
    record(state, PLAIN, {"j": 0}, cycle(state, PLAIN, solve))
    record.close()
    (read,) = read_record(tmp_path / "record")
    assert [each.pressing for each in read.state.waiting] == [pressing]
