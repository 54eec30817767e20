"""Work is as much as it says, whatever it takes."""

from __future__ import annotations

import pytest

from ces_workloads.peers import BadEnvironment
from ces_workloads.pipeline import burn


@pytest.mark.parametrize(
    ("kind", "each"), [("integer", 1.0), ("float", float(burn.TERMS)), ("matrix", 2.0 * burn.SIDE**3)]
)
def test_ten_units_are_ten_milliseconds_of_the_reference_core(
    monkeypatch: pytest.MonkeyPatch, kind: str, each: float
) -> None:
    done = []
    made = {"integer": "_powers", "float": "_distances", "matrix": "_products"}[kind]
    monkeypatch.setattr(burn, made, lambda: (lambda: done.append(each), each))
    burn.burner(10_000, kind)()
    assert sum(done) == pytest.approx(0.01 * burn.RATES[kind], rel=0.02)


@pytest.mark.parametrize("kind", [None, "integer", "float", "matrix"])
def test_each_kind_runs(kind: str | None) -> None:
    burn.burner(100, kind)()


def test_no_work_is_no_work_and_other_kinds_are_refused() -> None:
    burn.burner(0, "inference")()
    with pytest.raises(BadEnvironment, match="work of class inference is not done by this program: take integer"):
        burn.burner(1, "inference")
