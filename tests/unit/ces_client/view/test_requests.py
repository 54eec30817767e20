"""What requests take, as people see it."""

from __future__ import annotations

import pytest
from client_views import lines, wide

from ces_client.view.plan import metrics_text
from ces_client.view.requests import NEVER, Measured, measured_requests, request_times
from ces_common.messages.api import TaskView
from ces_common.messages.request_times import RequestStep, RequestTime

STEPS = [RequestStep(what="roof1 -> gate1", ms=10.0), RequestStep(what="detect-0 on gate1", ms=30.0)]
LOOP = RequestTime(name="loop", time_ms=40.0, deadline_ms=80.0, hard=True, steps=STEPS)


def task(progress: dict[str, object] | None) -> TaskView:
    return TaskView(name="client-0", rank=0, cpu=1, memory=1, progress=progress)


def test_each_part_is_drawn_after_the_one_before_up_to_the_deadline() -> None:
    head, columns, first, second = wide(request_times([LOOP]))
    assert head == "loop: 40 ms of 80 ms (hard)"
    assert columns.split() == ["PART", "TAKES", "WHEN"]
    begin = columns.index("WHEN")
    assert first.split() == ["roof1", "->", "gate1", "10", "ms", "█" * 5]
    assert second[begin:] == " " * 5 + "█" * 15


def test_a_missed_deadline_fills_the_width_with_the_time() -> None:
    late = LOOP.model_copy(update={"deadline_ms": 20.0, "hard": False})
    told = wide(request_times([late]))
    assert told[0] == "loop: 40 ms of 20 ms, missed"
    assert told[-1].endswith(" " * 10 + "█" * 30)


def test_what_never_ends_is_said() -> None:
    endless = RequestTime(name="loop", deadline_ms=5.0, steps=[RequestStep(what="t-0 on n")])
    told = "\n".join(wide(request_times([endless])))
    assert told.count(NEVER) == 2


def test_a_narrow_terminal_cuts_nothing_off() -> None:
    assert "detect-0 on gate1" in "\n".join(lines(request_times([LOOP]), 40))


def test_what_users_measured_stands_below() -> None:
    line = {"progress": {"requests": {"loop": {"p50_ms": 41.2, "p95_ms": 55, "p99_ms": 61, "answers": 200, "late": 3}}}}
    told = wide(request_times([LOOP, LOOP.model_copy(update={"name": "other"})], measured_requests([task(line)])))
    assert "measured: p50 41.2 ms, p95 55 ms, p99 61 ms; 200 answers, 3 late (1.5%)" in told
    assert told[-1] == "measured: nothing reported yet"


@pytest.mark.parametrize(
    "progress", [None, {}, {"progress": 3}, {"progress": {"requests": [1]}}, {"requests": {"a": 1}}]
)
def test_whoever_reports_nothing_or_nonsense_has_nothing(progress: dict[str, object] | None) -> None:
    assert measured_requests([task(progress)]) == {}


def test_nonsense_in_place_of_numbers_is_left_out() -> None:
    line = {"progress": {"requests": {"loop": {"p50_ms": "x", "answers": None, "lost": 2}}}}
    assert measured_requests([task(line)]) == {"loop": Measured(None, None, None, 0, 0, 2)}
    assert Measured(None, None, None, 0, 0, 2).text == "measured: nothing yet; 0 answers, 0 late, 2 without an answer"


def test_metrics_of_goals_are_told_where_they_say_something() -> None:
    plain = {"composite": 0.9}
    neutral = plain | {"time_score": 1.0, "power_change_w": 0.0, "energy_score": 1.0, "reliability": 1.0}
    assert metrics_text(neutral | {"move_cost": 0.0, "objective": 0.9}, 0.95) == (
        "quality (composite) 0.9  objective 0.9 of at most 0.95"
    )
    assert "watts more (modelled) 5.25" in metrics_text(plain | {"power_change_w": 5.25})
    assert metrics_text(plain, 0.95) == "quality (composite) 0.9 of at most 0.95"
