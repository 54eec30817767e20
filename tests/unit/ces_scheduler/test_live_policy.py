"""The scheduler decides with the version that is live, logs what it decides, and does not keep one that nobody
watches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from bus_manager import FakeManager
from evolving_policies import MIB, NOON, added, begun, decided, problems
from memory_bus import MemoryBus
from queue_looks import placing
from scheduler_steps import Clock, proposals, scheduler_on, step, waiting

from ces_core.evolution.decision_log import DecisionLog, read_log
from ces_core.evolution.folder import STATE, EvolutionFolder
from ces_core.evolution.gate import PROBATION
from ces_core.evolution.state import BASE
from ces_core.learned.policy_solvers import IMITATION_GREEDY
from ces_core.search.greedy import GREEDY
from ces_scheduler.live_policy import LivePolicy, Setup
from ces_scheduler.service import EVENTS, Scheduler
from ces_scheduler.solver_choice import STAND_IN, Choice

pytestmark = pytest.mark.usefixtures("policy_compiled")

BASE_CHOICE = Choice(IMITATION_GREEDY)


@pytest.fixture
def folder(tmp_path: Path) -> EvolutionFolder:
    return EvolutionFolder(tmp_path / "evolution")


def live_on(folder: EvolutionFolder, *, returns: bool = True, base: Choice = BASE_CHOICE) -> LivePolicy:
    live = LivePolicy(Setup(folder, IMITATION_GREEDY, base, None, 4 * MIB, returns))
    live.begin()
    return live


@pytest.fixture
def live(folder: EvolutionFolder) -> Iterator[LivePolicy]:
    live = live_on(folder)
    yield live
    live.close()


def promote(folder: EvolutionFolder, at_s: float = NOON) -> str:
    name = added(folder).name
    folder.change(lambda state: state.promoted(name, at_s, "test"))
    return name


def solver_now(live: LivePolicy) -> object:
    return live.placing(placing(IMITATION_GREEDY)).solver


def test_the_base_decides_until_a_version_is_live_and_again_after_it_was_taken_back(
    folder: EvolutionFolder, live: LivePolicy
) -> None:
    how = placing(IMITATION_GREEDY)
    assert live.placing(how) is how
    promote(folder)
    promoted = live.placing(how)
    assert promoted.solver.name == "imitation-greedy"
    assert promoted.solver.policy is not None  # type: ignore[attr-defined]
    assert live.placing(promoted) is promoted  # nothing has changed
    folder.change(lambda state: state.rolled_back(NOON, "test"))
    assert live.placing(promoted).solver is IMITATION_GREEDY


def test_a_version_that_cannot_be_used_leaves_the_deciding_to_the_base_and_plans_say_so(
    folder: EvolutionFolder, live: LivePolicy
) -> None:
    name = promote(folder)
    file = folder.policy(name)
    assert file is not None
    file.write_bytes(file.read_bytes()[:-100])
    now = live.placing(placing(GREEDY))
    assert now.solver is IMITATION_GREEDY
    assert now.fallback is not None
    assert "is not the file of v1 any more" in now.fallback


def test_where_the_base_was_refused_its_stand_in_decides(folder: EvolutionFolder) -> None:
    live = live_on(folder, base=Choice(STAND_IN, "no policy"))
    promote(folder)
    assert live.placing(placing(STAND_IN, fallback="no policy")).fallback is None
    folder.change(lambda state: state.rolled_back(NOON, "test"))
    assert live.placing(placing()).fallback == "no policy"


def test_a_state_that_cannot_be_read_changes_nothing(folder: EvolutionFolder, live: LivePolicy) -> None:
    promote(folder)
    before = solver_now(live)
    (folder.path / STATE).write_text("no state")
    assert solver_now(live) is before


@pytest.mark.usefixtures("compiled")
async def test_what_is_proposed_is_on_record_as_it_was_decided(
    folder: EvolutionFolder, live: LivePolicy, bus: MemoryBus, wired: FakeManager, clock: Clock
) -> None:
    name = promote(folder)
    scheduler = scheduler_on(bus, clock, placing(IMITATION_GREEDY), live=live)
    await scheduler.reader.start(EVENTS, scheduler._event)
    wired.change(jobs=[waiting()])
    await step(scheduler, wired)
    (plan,) = proposals(wired)
    (logged,) = read_log(folder.log).decisions
    assert (logged.name, logged.at_s) == ("q.1", clock.time().timestamp())
    assert logged.line["assignments"] == plan.assignments
    assert logged.line["composite"] == plan.metrics["composite"]
    assert logged.line["policy"] == plan.considered["policy"]["version"]
    again = IMITATION_GREEDY.using(folder.policy(name)).solve(logged.problem, seed=logged.line["seed"])
    assert again.plan is not None
    assert again.plan.assignments == plan.assignments
    await scheduler.reader.close()


@pytest.mark.usefixtures("compiled")
async def test_a_log_that_cannot_be_written_holds_up_no_job(
    folder: EvolutionFolder, live: LivePolicy, bus: MemoryBus, wired: FakeManager, clock: Clock
) -> None:
    folder.log.write_text("a file where the folder should be")
    scheduler: Scheduler = scheduler_on(bus, clock, placing(IMITATION_GREEDY), live=live)
    await scheduler.reader.start(EVENTS, scheduler._event)
    wired.change(jobs=[waiting()])
    await step(scheduler, wired)
    assert len(proposals(wired)) == 1
    await scheduler.reader.close()


class Cycle:
    """A cycle that starts so many jobs; the log is none of its business."""

    def __init__(self, count: int) -> None:
        self.starts = {f"j{number}": None for number in range(count)}


def make_decisions(live: LivePolicy, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """As the scheduler does, in cycles of ten."""
    monkeypatch.setattr(LivePolicy, "_logged", lambda *_: None)
    for _ in range(count // 10):
        live.decided(Cycle(10), NOON + 1)  # type: ignore[arg-type]


def test_a_version_that_nobody_watches_is_taken_back_before_500_decisions(
    folder: EvolutionFolder, live: LivePolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    promote(folder)
    solver_now(live)
    make_decisions(live, monkeypatch, PROBATION - 10)
    assert folder.state().live == "v1"
    make_decisions(live, monkeypatch, 10)
    assert folder.state().live == BASE
    assert folder.state().returned == ("v1",)
    assert "too few to keep it" in folder.state().history[-1].why
    assert PROBATION < 500


def test_decisions_before_a_restart_count(folder: EvolutionFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    log, problem = DecisionLog(folder.log, 4 * MIB), problems(range(1), solver=GREEDY)[0]
    for number in range(12):
        log.append(decided(f"j{number}", problem, NOON + number, GREEDY))
    log.close()
    begun(folder.path)
    promote(folder, NOON + 2)
    live = live_on(folder)
    solver_now(live)
    make_decisions(live, monkeypatch, PROBATION - 20)
    assert folder.state().live == "v1"
    make_decisions(live, monkeypatch, 10)
    assert folder.state().live == BASE


@pytest.mark.parametrize("frozen", [True, False])
def test_nothing_is_taken_back_without_being_asked(
    folder: EvolutionFolder, monkeypatch: pytest.MonkeyPatch, frozen: bool
) -> None:
    live = live_on(folder, returns=frozen)
    promote(folder)
    folder.change(lambda state: state.with_frozen(frozen, NOON, "test"))
    solver_now(live)
    make_decisions(live, monkeypatch, 2 * PROBATION)
    assert folder.state().live == "v1"
