"""``ces bench applications`` without a cluster: what is drawn, and how what was measured is judged and told."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ces_common.jobfile import JobFile
from ces_common.messages.api import FlowView, PlanView, TaskView
from ces_experiments.applications.draw import SITES, applications, topology
from ces_experiments.applications.judge import answers, as_reckoned, missed, reckoned, times, told, undisturbed, waiting
from ces_experiments.applications.report import REPORT

BEFORE = {"sent": 100, "answers": 97, "late": 1, "lost": 1}


def test_the_same_seed_draws_the_same_applications_and_all_cross_the_backbone() -> None:
    files = applications(3, 30)
    assert files == applications(3, 30)
    assert files != applications(4, 30)
    sites = {host: switch for switch, hosts in SITES.items() for host in hosts}
    for file in files:
        job = JobFile.model_validate(file)
        assert 1 <= len(job.tasks) - 1 <= 4
        away = [group.constraints.labels["site"] for group in job.tasks if "site" in group.constraints.labels]
        assert [sites[file["users"][0]["at"]["node"]]] != away


def test_a_plan_divides_into_wires_messages_and_work() -> None:
    steps = [("n1 -> n4", 20.0), ("t1-0 on n4", 5.0), ("n4 -> n1", 15.0)]
    request = {
        "time_ms": 40.0, "deadline_ms": 80.0, "hard": True, "steps": [{"what": what, "ms": ms} for what, ms in steps],
    }  # fmt: skip
    there = ["n1", "s1", "s2", "n4"]
    flows = [
        FlowView(src="user-0", dst="t1-0", min=1, max=2, rate=8_000_000, path=there),
        FlowView(src="t1-0", dst="user-0", min=1, max=2, path=there[::-1]),
    ]
    plan = PlanView(
        plan="p", job="j", attempt=1, solver="search", version=1, committed_at=datetime.now(UTC),
        considered={"requests": [request]}, flows=flows,
    )  # fmt: skip
    edges = [{"src": "user-0", "dst": "t1-0", "message": 5000}, {"src": "t1-0", "dst": "user-0", "message": 100}]
    found = reckoned(plan, {"flows": {"edges": edges}, "requests": [{"rate": 10}]}, topology())
    assert found["wires_ms"] == pytest.approx(2 * (1 + 8 + 1))
    assert found["work_ms"] == 5.0
    assert found["messages_ms"] == pytest.approx(15.0)
    assert found["hops"] == 6
    assert found["flow_load"] == pytest.approx(0.05)


def test_counts_between_two_reports() -> None:
    after = {"sent": 200, "answers": 190, "late": 5, "lost": 9}
    assert waiting(BEFORE) == 2
    assert missed(BEFORE, after) == {"sent": 100, "missed": 12}
    assert as_reckoned(25.0, 20.0)
    assert not as_reckoned(25.1, 20.0)


def test_answers_during_which_nobody_waited_for_a_core_are_told_apart() -> None:
    lines = ['{"progress": {}}', '{"answers": {"ask": [[1020.0, 20.0], [1090.0, 30.0]]}}', "no JSON"]
    given = [*answers(lines), (1110.0, 30.0), (1240.0, 30.0), (3000.0, 20.0)]
    spans = [(1000.0, 1100.0, 0.8), (1100.0, 1200.0, 1.4), (1200.0, 1300.0, 0.0)]
    found = times(given, spans)
    assert found["all"] == {"n": 4, "p50_ms": 30.0, "p95_ms": 30.0, "p99_ms": 30.0}
    assert undisturbed(given, spans) == [given[0], given[1], given[3]]
    assert found["undisturbed"]["n"] == 3
    assert found["core_wait_ms"] == pytest.approx(2.2 / 4)
    assert undisturbed(given, []) == []


@pytest.mark.parametrize("wrapped", [lambda line: line, lambda line: {"progress": line}, lambda line: {"result": line}])
def test_what_a_sender_has_told_last(wrapped: Any) -> None:
    line = wrapped({"requests": {"ask": BEFORE}, "served": 0})
    assert told(TaskView(name="user-0", rank=0, cpu=100, memory=1, progress=line)) == BEFORE
    assert told(TaskView(name="t1-0", rank=1, cpu=100, memory=1, progress={"served": 3})) is None
    assert told(TaskView(name="t2-0", rank=2, cpu=100, memory=1)) is None


def test_tables_and_a_picture_are_made_of_results(tmp_path: Path) -> None:
    model = {
        "time_ms": 40.0, "deadline_ms": 80.0, "hard": False, "wires_ms": 22.0, "work_ms": 4.0, "messages_ms": 14.0,
        "hops": 6, "flow_load": 0.05,
    }  # fmt: skip
    calm, busy = ({"n": 100, "p50_ms": 38.0, "p95_ms": p95, "p99_ms": 60.0} for p95 in (47.0, 49.0))
    alone = {"all": busy, "undisturbed": calm, "core_wait_ms": 0.5}
    flooded = {"sent": 200, "missed": 1, "all": busy, "undisturbed": {"n": 0}, "core_wait_ms": 0.5}
    one = {"kind": "compute", "tasks": 1, "reckoned": model, "alone": alone, "reserved": flooded}
    other = one | {"alone": alone | {"all": calm}, "plain": {"sent": 100, "missed": 60}}
    question = {"applications": 2, "seed": 1, "seconds": 20.0, "largest": 8000, "together": 1, "floods": True}
    results = {"question": question, "wires": [], "failed": {}, "applications": {"app01": one, "app02": other}}
    aims, each, _ = REPORT.tables(results)
    assert [row[2] for row in aims.rows] == [
        "1 of 2", "2 of 2", "0.5% of 400", "2 of 2", "0 of 2", "0 of 0", "60.0% of 100", "0 of 1",
    ]  # fmt: skip
    assert [row[5] for row in each.rows] == ["1.23 *", "1.18"]
    assert REPORT.draw(results, tmp_path) == ["applications.png", "applications.pdf"]
