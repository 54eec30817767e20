"""What a candidate learns from, and what is held out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from evolving_policies import NOON, logged

from ces_core.evolution.decision_log import read_log
from ces_rl.evolve.lessons import LEAST, chosen, learned_until, write_lessons
from ces_rl.problems.source import read_folder

pytestmark = pytest.mark.usefixtures("policy_compiled")

DAY = 86_400.0


def times(days: int, each: int) -> list[float]:
    return [NOON + DAY * day + 60.0 * number for day in range(days) for number in range(each)]


@pytest.mark.parametrize(("days", "share", "held_out"), [(2, 0.2, 1), (10, 0.2, 2), (10, 0.01, 1), (3, 0.9, 2)])
def test_the_last_days_are_held_out_and_one_is_left(days: int, share: float, held_out: int) -> None:
    all_times = times(days, 30)
    until_s = learned_until(all_times, share)
    assert sum(at_s > until_s for at_s in all_times) == 30 * held_out


def test_of_one_day_the_last_decisions_are_held_out() -> None:
    one_day = times(1, 50)
    assert learned_until(one_day, 0.2) == one_day[39]


def test_too_few_decisions_are_refused() -> None:
    with pytest.raises(ValueError, match=f"19 of 38 logged decisions may be learned from, and {LEAST} are least"):
        learned_until(times(2, 19), 0.2)


def test_logged_and_synthetic_problems_come_half_and_half_also_to_validate_on(tmp_path: Path) -> None:
    count = logged(tmp_path / "log", range(40))
    decisions = read_log(tmp_path / "log").decisions
    until_s = decisions[-5].at_s
    found = chosen(decisions, until_s, 30, seed=3)
    assert len(found) == min(30, count - 4)
    assert all(each.at_s <= until_s for each in found)
    assert [each.name for each in found] == [each.name for each in chosen(decisions, until_s, 30, seed=3)]
    assert write_lessons(found, tmp_path / "lessons", seed=3) == len(found)
    learned, held_out = read_folder(tmp_path / "lessons")
    names = {each.problem.name for each in found}
    counts = [sum(len(one.cluster.topology.nodes) == 8 for _, one in part) for part in (learned, held_out)]
    assert sum(counts) == len(found)
    assert 0 < counts[1] < len(held_out)
    files = sorted((tmp_path / "lessons").iterdir())
    assert sum(json.loads(file.read_text())["job"]["name"] in names for file in files) >= len(found)
