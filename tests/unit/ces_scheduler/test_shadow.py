"""The shadow decides logged problems again, within its share of the CPU, and does what the gate says."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from evolving_policies import MIB, NOON, added, begun, decided, poisoned, problems
from hypothesis import given
from hypothesis import strategies as st

from ces_core.evolution.decision_log import DecisionLog, segments
from ces_core.evolution.folder import EvolutionFolder
from ces_core.evolution.gate import BETWEEN_S
from ces_core.evolution.pairing import Pair, pairs_of
from ces_core.evolution.state import BASE
from ces_scheduler import shadow as shadow_module
from ces_scheduler.shadow import LATEST, SHARE, Shadow, Tail, rest_s, step_back

pytestmark = pytest.mark.usefixtures("policy_compiled")

HOUR = 3600.0


class Books:
    """A scheduler's log that grows, decision by decision; all are of a few problems in turn."""

    def __init__(self, folder: EvolutionFolder, seeds: Iterable[int] = range(30)) -> None:
        self._log = DecisionLog(folder.log, 16 * MIB)
        self._kept = [decided("", each) for each in problems(seeds)]
        self.count = 0

    def decide(self, at_s: float) -> None:
        one = self._kept[self.count % len(self._kept)]
        self._log.append(replace(one, name=f"j{self.count}.1", at_s=at_s))
        self.count += 1


@pytest.fixture
def folder(tmp_path: Path) -> EvolutionFolder:
    return begun(tmp_path / "evolution")


def test_it_rests_without_a_scheduler_or_decisions_and_while_frozen(tmp_path: Path, folder: EvolutionFolder) -> None:
    assert not Shadow(EvolutionFolder(tmp_path / "new"), auto=True).step()
    shadow = Shadow(folder, auto=True)
    assert not shadow.step()
    Books(folder, range(2)).decide(NOON)
    folder.change(lambda state: state.with_frozen(True, NOON, "test"))
    assert not shadow.step()
    folder.change(lambda state: state.with_frozen(False, NOON, "test"))
    assert shadow.step()
    assert not shadow.step()


def test_a_candidate_is_compared_on_what_it_has_not_learned_from(folder: EvolutionFolder) -> None:
    books = Books(folder)
    for number in range(4):
        books.decide(NOON + number)
    name = added(folder, learned_until_s=NOON + 1).name
    shadow = Shadow(folder, auto=True)
    while shadow.step():
        pass
    found = folder.pairs(folder.candidacy(name, folder.state()))
    assert [(pair.name, pair.gain, pair.refused) for pair in found] == [("j2.1", 0.0, False), ("j3.1", 0.0, False)]
    assert folder.state().live == BASE  # it is the same policy, and gains nothing


def better(monkeypatch: pytest.MonkeyPatch, gain: float) -> None:
    """Whoever is compared with another gains so much over it."""

    def compared(logged: object, *_: object) -> Pair:
        name = logged.name  # type: ignore[attr-defined]
        return Pair(name, gain + (0.001 if int(name[1:-2]) % 2 else -0.001), False, (1.0, 1.0))

    monkeypatch.setattr(shadow_module, "compared", compared)


def run_on(shadow: Shadow, books: Books, count: int, at_s: float) -> None:
    for _ in range(count):
        books.decide(at_s)
        assert shadow.step()


def test_what_is_better_is_promoted_once_a_day_and_only_where_that_is_wanted(
    folder: EvolutionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    better(monkeypatch, 0.02)
    books, clock = Books(folder, range(3)), [NOON]
    first = added(folder).name
    for auto in (False, True):
        run_on(Shadow(folder, auto=auto, now=lambda: clock[0]), books, 120, NOON)
        assert folder.state().live == (first if auto else BASE)
    assert folder.state().former == BASE
    shadow = Shadow(folder, auto=True, now=lambda: clock[0])
    second = added(folder, made_s=NOON + 1).name
    run_on(shadow, books, 120, NOON + HOUR)
    assert folder.state().live == first
    clock[0] = NOON + BETWEEN_S
    run_on(shadow, books, 1, NOON + BETWEEN_S)
    assert (folder.state().live, folder.state().former) == (second, first)
    assert folder.state().history[-1].why.startswith("gain +0.02")


def test_what_is_worse_is_taken_back_only_where_that_is_wanted(
    folder: EvolutionFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    better(monkeypatch, -0.02)
    books, name = Books(folder, range(3)), added(folder).name
    folder.change(lambda state: state.promoted(name, NOON, "forced"))
    run_on(Shadow(folder, auto=False), books, 100, NOON + 1)
    assert folder.state().live == name
    shadow = Shadow(folder, auto=True, now=lambda: NOON + 2)
    run_on(shadow, books, 1, NOON + 1)
    assert (folder.state().live, folder.state().returned) == (BASE, (name,))
    assert "worse than the former one" in folder.state().history[-1].why


@pytest.mark.needs("torch")
@pytest.mark.parametrize("one_in", [1, 4])
def test_a_poisoned_policy_never_stays_500_decisions(folder: EvolutionFolder, tmp_path: Path, one_in: int) -> None:
    """A real one, forced on the scheduler, whether the shadow decides every problem again or one in four."""
    books, name = Books(folder), added(folder, poisoned(tmp_path / "worst.onnx")).name
    folder.change(lambda state: state.promoted(name, NOON, "forced"))
    shadow = Shadow(folder, auto=True, now=lambda: NOON + 2)
    while folder.state().live == name:
        books.decide(NOON + 1)
        if books.count % one_in == 0:
            shadow.step()
        assert books.count < 500
    found = pairs_of(folder.pairs(next((folder.path / "pairs").glob("*-since-*"))))
    assert found.gains.mean() < 0


def test_comparisons_that_a_command_has_made_meanwhile_count(folder: EvolutionFolder) -> None:
    books, name = Books(folder, range(3)), added(folder).name
    shadow = Shadow(folder, auto=True, now=lambda: NOON)
    run_on(shadow, books, 1, NOON)
    file = folder.candidacy(name, folder.state())
    folder.keep(file, [Pair(f"r{number}.1", 0.02 + 0.001 * (number % 2), False, (1.0, 1.0)) for number in range(200)])
    run_on(shadow, books, 1, NOON)
    assert folder.state().live == name


def test_it_follows_the_latest_decisions_and_counts_all(folder: EvolutionFolder) -> None:
    books, tail = Books(folder, range(2)), Tail(folder.log)
    for number in range(LATEST + 20):
        books.decide(NOON + number)
    tail.read()
    assert (tail.latest[0].name, len(tail.latest)) == ("j20.1", LATEST)
    assert (tail.since(NOON), tail.since(NOON + 200)) == (LATEST + 20, 20)
    for segment in segments(folder.log):
        segment.unlink()
    tail.read()
    assert len(tail.latest) == LATEST


@given(st.lists(st.floats(0.001, 5.0), min_size=1, max_size=50))
def test_it_uses_no_more_than_its_share_of_the_time(costs: list[float]) -> None:
    wall_s = cpu_s = 0.0
    for cost_s in costs:
        cpu_s, wall_s = cpu_s + cost_s, wall_s + cost_s
        wall_s += rest_s(cpu_s, wall_s)
        assert cpu_s <= SHARE * wall_s * (1 + 1e-9)
    assert rest_s(1.0, 1.0 / SHARE + 5.0) == 0.0


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="needs Linux")
def test_it_runs_at_idle_priority() -> None:
    child = os.fork()
    if child == 0:
        step_back()
        os._exit(os.sched_getscheduler(0) != os.SCHED_IDLE or os.getpriority(os.PRIO_PROCESS, 0) != 19)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
