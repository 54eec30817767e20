"""What the scheduler puts on record of its cycles is decided alike again, with what one cycle remembers of another."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from cluster_state import MBIT, NOW, job, node, snapshot, view_of, wire
from hypothesis import given, settings
from hypothesis import strategies as st
from queue_looks import SOON, placing

from ces_common.messages.records import AllocationRecord, FlowRecord, JobRecord, NodeRecord, Snapshot
from ces_common.state_view import StateView
from ces_common.states import JobState
from ces_core.queue.parameters import Parameters
from ces_core.queue.record import Recorder
from ces_core.registry import get_solver
from ces_scheduler.cycle_input import LastCycle, cycle_input, is_queued
from ces_scheduler.cycle_run import CycleRun, run_cycle
from ces_scheduler.decision import Decision
from ces_scheduler.offer import Offer, offer_of
from ces_sim.replay import replay

GREEDY = get_solver("greedy")
LINKS = [*wire("n0", "n1"), *wire("n1", "n2")]


@dataclass
class Desk:
    """Scheduler and manager without what is between them, on record."""

    view: StateView
    parameters: Parameters
    record: Recorder
    now: float = 0.0
    offer: Offer | None = None
    last: LastCycle | None = None
    runs: list[CycleRun] = field(default_factory=list)

    def round(self, preempting: Collection[str] = ()) -> CycleRun:
        self.offer = offer_of(self.view, self.offer)
        queued = [each for each in self.view.jobs.values() if is_queued(each)]
        now = SOON + timedelta(seconds=self.now)
        look = cycle_input(queued, self.offer, [], now, self.parameters, self.last, None, preempting)
        self.runs.append(run_cycle(1, look, placing(GREEDY, self.parameters), self.record))
        self.last = self.runs[-1].last
        return self.runs[-1]

    def change(
        self, jobs: Collection[JobRecord] = (), gone: Collection[str] = (), nodes: Collection[NodeRecord] = ()
    ) -> None:
        jobs, gone, nodes = list(jobs), list(gone), list(nodes)
        self.view.merge(Snapshot(epoch="e", version=1, full=False, jobs=jobs, removed_jobs=gone, nodes=nodes))

    def commit(self, name: str, decision: Decision) -> None:
        record = self.view.jobs[name]
        allocations = [
            AllocationRecord(id=task, task=task, rank=rank, node=on, address="", port=1)
            for rank, (task, on) in enumerate(decision.assignments.items())
        ]
        reserved = [FlowRecord(number=1, min=1, max=99 * MBIT, **dict(flow)) for flow in decision.flows]
        given = {"allocations": allocations, "reserved": reserved, "state": JobState.RUNNING}
        self.change([record.model_copy(update=given | {"started_at": SOON + timedelta(seconds=self.now)})])


def starts_of(run: CycleRun) -> list[tuple[str, dict[str, str]]]:
    return [(name, dict(decision.assignments)) for name, decision in run.starts.items()]


def test_who_was_refused_is_known_in_the_next_cycle_of_a_replay(tmp_path: Path) -> None:
    """Else it would use up the window again, and others not come to their turn."""
    wide = [job(f"wide{i}", tasks=2, task={"cpu": 3000}, expected_s=1.0) for i in range(3)]
    small = job("small", tasks=1, task={"cpu": 1000}, expected_s=10_000.0)
    view = view_of([node("n0"), node("n1", 1, cpu=2500)], wire("n0", "n1"), [*wide, small, job("run", ["n1"])])
    record = Recorder(tmp_path / "record")
    desk = Desk(view, Parameters(window=2, overdue=None), record)
    assert [starts_of(desk.round()) for _ in range(2)] == [[], [("small", {"w-0": "n0"})]]
    record.close()
    assert all(each.replayed == each.recorded for each in replay(tmp_path / "record", GREEDY))


@st.composite
def queues(draw: st.DrawFn) -> list[JobRecord]:
    jobs = []
    for number in range(draw(st.integers(3, 9))):
        tasks, low = draw(st.integers(1, 3)), draw(st.integers(1, 60)) * MBIT
        made = job(
            f"j{number}",
            tasks=tasks,
            asked=[(0, 1, low, 90 * MBIT)] if tasks > 1 else [],
            task={"cpu": draw(st.sampled_from([500, 1500, 2500, 3500]))},
            priority=draw(st.sampled_from([0, 50, 100])),
            preemption=draw(st.sampled_from(["stop", "suspend"])),
            expected_s=draw(st.sampled_from([None, 10.0, 1000.0])),
            submitted_at=NOW - timedelta(hours=draw(st.sampled_from([0, 3]))),
        )
        jobs.append(made)
    return jobs


parameters = st.builds(
    Parameters,
    window=st.sampled_from([1, 2, 8]),
    starts=st.just(2),
    preemption=st.sampled_from([None, 20]),
    reservations=st.integers(0, 2),
)


@settings(max_examples=30, deadline=None)
@given(jobs=queues(), parameters=parameters, data=st.data())
def test_every_cycle_is_decided_alike(jobs: list[JobRecord], parameters: Parameters, data: st.DataObject) -> None:
    view = StateView()
    view.merge(snapshot([node("n0"), node("n1", 1), node("n2", 2)], LINKS, jobs[:3]))
    with TemporaryDirectory() as folder:
        record = Recorder(Path(folder) / "record")
        desk = Desk(view, parameters, record)
        preempting: Collection[str] = ()
        for number in range(8):
            desk.now += data.draw(st.sampled_from([1.0, 1.0, 4000.0]))
            run = desk.round(preempting)
            for name, decision in run.starts.items():
                if data.draw(st.booleans()):
                    desk.commit(name, decision)
            wanted = run.decisions.preempted
            preempting = [name for name in wanted if data.draw(st.booleans())]
            leave = [each.id for each in view.jobs.values() if each.allocations and data.draw(st.integers(0, 2)) == 0]
            some = node("n2", 2, cordoned=data.draw(st.booleans())) if data.draw(st.booleans()) else None
            desk.change(jobs[number + 3 : number + 4], leave, [] if some is None else [some])
        record.close()
        cycles = list(replay(Path(folder) / "record", GREEDY))
    assert len(cycles) == len(desk.runs)
    for each in cycles:
        assert each.replayed == each.recorded
        assert each.made_room[0] == each.made_room[1]
