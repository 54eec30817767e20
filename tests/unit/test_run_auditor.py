"""The auditor of what ran when, on journals of a few lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import run_auditor
from run_auditor import Journal, Run, judge

ROOM = {"a": 1000, "b": 1000}


def journal(*runs: Run, **freed: float) -> Journal:
    return Journal(list(runs), freed)


def run(began: float, ended: float, node: str = "a", task: str = "j/0", start: str = "x.1", amount: int = 500) -> Run:
    return Run(node, task, start.partition(".")[0], start, amount, began, ended)


def test_a_task_that_runs_in_one_place_after_the_other_is_well() -> None:
    assert judge(journal(run(0, 5), run(5, 9, "b", start="y.1"), x=5.0, y=9.0), ROOM) == []


@pytest.mark.parametrize("node", ["a", "b"])
def test_a_task_that_runs_twice_at_a_time_is_found(node: str) -> None:
    found = judge(journal(run(0, 5), run(4.5, 9, node, start="y.1")), ROOM)
    assert found == [f"a task runs twice: x.1 of j/0 on a [0.00, 5.00), y.1 of j/0 on {node} [4.50, 9.00)"]


def test_a_run_that_has_not_ended_runs_on() -> None:
    still = Journal()
    still.began(0, "a", "j/0", "x", "x.1", 500)
    still.began(7, "b", "j/0", "y", "y.1", 500)
    assert len(judge(still, ROOM)) == 1


def test_two_tasks_of_a_job_may_run_at_a_time() -> None:
    assert judge(journal(run(0, 5), run(0, 5, task="j/1", start="y.1")), ROOM) == []


def test_what_is_started_again_is_found_though_it_has_ended() -> None:
    found = judge(journal(run(0, 5), run(6, 9)), ROOM)
    assert found == ["started twice: x.1 of j/0 on a [0.00, 5.00), x.1 of j/0 on a [6.00, 9.00)"]
    assert judge(journal(run(0, 5), run(6, 9, start="x.2")), ROOM) == []


def test_what_outlives_its_place_is_found() -> None:
    assert judge(journal(run(0, 5), x=5.0), ROOM) == []
    assert judge(journal(run(0, 5), x=4.9), ROOM) == ["its place was given away at 4.90: x.1 of j/0 on a [0.00, 5.00)"]
    assert len(judge(journal(run(6, 7), x=4.9), ROOM)) == 1, "also where it began afterwards"


def test_a_node_that_runs_more_than_it_has_is_found() -> None:
    three = [run(i, 10, task=f"j/{i}", start=f"x{i}.1") for i in range(3)]
    assert judge(journal(*three), ROOM) == ["a has 1000 and runs 1500 at 2.00"]
    assert judge(journal(*three[:2], run(10, 12, task="j/2", start="x2.1")), ROOM) == []


def test_amounts_that_change_count_from_when_they_do() -> None:
    grows, beside = run(0, 10), run(4, 8, task="j/1", start="y.1")
    grows.changes += [(2.0, 1000), (4.0, 500), (8.0, 1000), (11.0, 2000)]
    assert judge(journal(grows, beside), ROOM) == []
    grows.changes[1] = (4.5, 500)
    assert judge(journal(grows, beside), ROOM) == ["a has 1000 and runs 1500 at 4.00"]
    lent = journal(grows, beside)
    lent.lent["x"] = [(3.0, 5.0)]
    assert judge(lent, ROOM) == []


def test_what_ran_for_no_time_did_not_run() -> None:
    assert judge(journal(run(0, 5), run(3, 3, "b", start="y.1")), ROOM) == []


def test_it_shares_no_code_with_what_it_judges() -> None:
    loaded = "import sys, run_auditor; print([name for name in sys.modules if name.startswith('ces')])"
    folder = Path(run_auditor.__file__).parent
    said = subprocess.run([sys.executable, "-c", loaded], cwd=folder, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
