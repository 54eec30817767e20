from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_manager import progress_history
from ces_manager.progress_history import KEEP, MAX_FIELDS, MAX_POINTS, ProgressHistory

START = datetime(2026, 1, 1, tzinfo=UTC)


def told(count: int, **data: object) -> ProgressHistory:
    history = ProgressHistory()
    for step in range(count):
        history.heard("job", "w-0", {"step": step} | data, START + timedelta(seconds=step))
    return history


@given(count=st.integers(1, 5000))
def test_a_curve_is_bounded_and_covers_the_whole_run(count: int) -> None:
    curve = told(count).of_job("job")["w-0"]
    steps = [int(step or 0) for step in curve.values["step"]]
    assert len(curve.at) == len(steps) <= MAX_POINTS
    assert steps == sorted(steps)
    assert [(at - START).total_seconds() for at in curve.at] == steps
    assert steps[0] == 0
    assert steps[-1] >= count * 0.9 - 1
    assert len(steps) >= min(count, MAX_POINTS // 2)


def test_only_numbers_are_drawn_and_not_too_many() -> None:
    odd = {"note": "text", "done": True, "loss": float("nan"), "huge": 10**400, "x" * 100: 1, "list": [1]}
    many = {f"f{i}": float(i) for i in range(50)}
    curve = told(3, **odd).of_job("job")["w-0"]
    assert set(curve.values) == {"step"}
    assert len(told(3, **many).of_job("job")["w-0"].values) == MAX_FIELDS
    history = ProgressHistory()
    history.heard("job", "w-0", {"note": "text"}, START)
    assert history.of_job("job") == {}


def test_a_field_that_comes_later_or_is_missing_has_gaps() -> None:
    history = ProgressHistory()
    for at, data in enumerate(({"loss": 2.0}, {"loss": 1.0, "accuracy": 0.5}, {"accuracy": 0.75})):
        history.heard("job", "w-0", data, START + timedelta(seconds=at))
    assert history.of_job("job")["w-0"].values == {"loss": [2.0, 1.0, None], "accuracy": [None, 0.5, 0.75]}


def test_curves_end_by_age_and_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_history, "MAX_CURVES", 2)
    history = ProgressHistory()
    for task in ("a", "b", "a", "c"):
        history.heard("job", task, {"step": 1}, START)
    assert set(history.of_job("job")) == {"a", "c"}
    assert history.of_job("another") == {}
    history.forget_old(START + KEEP)
    assert history.of_job("job")
    history.forget_old(START + KEEP + timedelta(seconds=1))
    assert history.of_job("job") == {}
