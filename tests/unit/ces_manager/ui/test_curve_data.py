"""Curves as numbers: which fields are curves, one time axis for all workers, their mean, holes, and the scale."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ui_modules import Modules

pytestmark = pytest.mark.needs("browser")


def curves(ui: Modules, tasks: dict[str, Any], field: str = "loss", most: int = 64) -> Any:
    return ui.run(
        'return (await load("parts/curve_data")).curvesOf(given.tasks, given.field, "mean", given.most);',
        tasks=tasks, field=field, most=most,
    )  # fmt: skip


def task(at: list[float], *values: float | None) -> dict[str, Any]:
    return {"at": at, "values": {"loss": list(values)}}


def test_counters_are_no_curves_and_losses_come_first(ui: Modules) -> None:
    said = ["round", "bytes_sent", "zeta", "accuracy", "loss", "rank", "alpha"]
    found = ui.run(
        'return (await load("parts/curve_data")).fieldsOf({ w: { values: given.values } });',
        values={name: [1] for name in said},
    )
    assert found == {"first": ["loss", "accuracy"], "others": ["alpha", "zeta"]}


def test_without_a_known_field_the_first_two_are_shown(ui: Modules) -> None:
    found = ui.run(
        'return (await load("parts/curve_data")).fieldsOf({ w: { values: given.values } });',
        values={name: [1] for name in "cab"},
    )
    assert found == {"first": ["a", "b"], "others": ["c"]}


def test_values_between_two_lie_on_the_line_and_the_mean_is_of_those_that_speak(ui: Modules) -> None:
    found = curves(ui, {"w10": task([0, 10], 0, 10), "w2": task([5, 15], 1, 3)})
    assert found["at"] == [0, 5, 10, 15]
    by_name = {line["name"]: line["values"] for line in found["lines"]}
    assert list(by_name) == ["w2", "w10", "mean"]  # by number, the mean above all
    assert by_name["w10"] == [0, 5, 10, None]
    assert by_name["w2"] == [None, 1, 2, 3]
    assert by_name["mean"] == [0, 3, 6, 6.5]  # a last value stands for a while: others may be a little later


def test_one_worker_has_one_line(ui: Modules) -> None:
    found = curves(ui, {"w": task([1, 2, 3], 5, None, 7)})
    assert found == {"at": [1, 3], "lines": [{"name": "w", "values": [5, 7], "mean": True}], "workers": 1}


def test_nobody_who_said_it_has_no_line(ui: Modules) -> None:
    found = curves(ui, {"w": {"at": [1], "values": {}}})
    assert found == {"at": [], "lines": [], "workers": 0}


def test_many_workers_share_lines_but_all_are_in_the_mean(ui: Modules) -> None:
    found = curves(ui, {f"w{i}": task([0], float(i)) for i in range(9)}, most=2)
    assert [line["name"] for line in found["lines"]] == ["w0", "w1", "mean"]
    assert (found["lines"][-1]["values"], found["workers"]) == ([4], 9)


@given(st.lists(st.lists(st.integers(0, 2000), min_size=1, max_size=60, unique=True), min_size=2, max_size=12))
def test_a_mean_lies_within_what_the_workers_say(ui: Modules, each: list[list[int]]) -> None:
    tasks = {f"w{i}": task(sorted(at), *(float(n % 7) for n in sorted(at))) for i, at in enumerate(each)}
    found = curves(ui, tasks)
    assert 1 <= len(found["at"]) <= 400
    assert found["at"] == sorted(set(found["at"]))
    for value in found["lines"][-1]["values"]:
        assert value is None or -1e-9 <= value <= 6 + 1e-9


def test_a_hole_stands_where_samples_are_missing(ui: Modules) -> None:
    found = ui.run(
        'return (await load("parts/curve_data")).withHoles({ at: [0, 20, 80], values: { cpu: [1, 2, 3] } }, 20);'
    )
    assert found == {"at": [0, 20, 40, 80], "values": {"cpu": [1, 2, None, 3]}}


@pytest.mark.parametrize(
    ("values", "limits", "top"),
    [
        ([[1, 2, None]], [], 2.16),
        ([[1, 2]], [10], 10.8),
        ([[1, 2]], [1000], 2.16),  # far above all: it would press them flat
        ([[0]], [5, 8], 5.4),
        ([[0]], [], 1.08),
        ([], [], 1.08),
    ],
)
def test_the_scale_reaches_what_is_near(ui: Modules, values: Any, limits: Any, top: float) -> None:
    found = ui.run(
        'return (await load("parts/curve_data")).topOf(given.values, given.limits);', values=values, limits=limits
    )
    assert found == pytest.approx(top)


def test_the_last_value_there_is(ui: Modules) -> None:
    script = 'const { lastOf } = await load("parts/curve_data"); return [lastOf([1, null, 2, null]), lastOf([])];'
    assert ui.run(script) == [2, -1]
