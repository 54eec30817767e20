"""What is measured, and for how long."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ces_common.messages.scores import Kind
from ces_edge_agent.scores.plan import ALONE, KINDS, LIMIT_S, PERIOD_S, Cores, Run, lasts_s, runs_on, window_s
from ces_edge_agent.scores.storage import PATIENCE_S

TWO_TYPES = [Cores("capacity 1024", [4, 5]), Cores("capacity 446", [0, 1, 2, 3])]


def test_one_thread_and_all_threads_of_each_kind_and_disk_and_network_once() -> None:
    runs = runs_on([Cores("", [0, 1])])
    assert runs[:2] == [Run("integer", 1), Run("integer", 2)]
    assert [run for run in runs if run.kind in ALONE] == [Run("network", 1), Run("disk", 1)]
    assert len(runs) == len(set(runs)) == 12


def test_a_machine_with_one_cpu_has_no_more_threads() -> None:
    assert {run.threads for run in runs_on([Cores("", [0])])} == {1}


def test_each_type_of_core_is_measured_alone_on_one_of_its_own() -> None:
    runs = [run for run in runs_on(TWO_TYPES) if run.kind == "float"]
    assert runs == [
        Run("float", 1, "capacity 1024", 4),
        Run("float", 1, "capacity 446", 0),
        Run("float", 6),
    ]


@pytest.mark.parametrize("kinds", [KINDS, KINDS[:5]])
@pytest.mark.parametrize("types", [1, 2, 3])
def test_everything_fits_into_the_time(types: int, kinds: Sequence[Kind]) -> None:
    runs = runs_on([Cores(f"type {number}", [2 * number, 2 * number + 1]) for number in range(types)], kinds)
    timed = sum(1 for run in runs if run.kind != "disk")
    window = window_s(timed)
    assert timed * lasts_s(window) + PATIENCE_S < LIMIT_S
    assert round(window / PERIOD_S, 9) in (1, 2, 3), "whole periods of a quota"


def test_where_less_is_measured_each_has_more_time() -> None:
    one = [Cores("", [0, 1])]
    least, most = len(runs_on(one, KINDS[:5])) - 1, len(runs_on(one)) - 1
    assert window_s(least) > window_s(most) > PERIOD_S
