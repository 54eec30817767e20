"""What a malleable job's file says of its speed."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from ces_common.elastic import FASTEST, MOST_HINTS, MOST_WORK, SLOWEST, Elastic, Speed


def elastic(**speed: Any) -> Elastic:
    return Elastic.model_validate({"group": "w", "sizes": [1, 2, 4], "speed": speed})


def test_a_speed_is_read_and_stored() -> None:
    found = elastic(unit="images", total=40_000, hint={1: 3.6, "2": 5.7, 4: 8.5})
    assert found.speed == Speed(unit="images", total=40_000, hint={1: 3.6, 2: 5.7, 4: 8.5})
    assert Elastic.model_validate_json(found.model_dump_json()) == found


def test_nothing_need_be_said() -> None:
    assert Elastic.model_validate({"group": "w", "sizes": [1]}).speed == Speed(unit="steps", total=None, hint={})


@pytest.mark.parametrize(
    ("speed", "said"),
    [
        ({"total": 0}, "speed.total"),
        ({"total": MOST_WORK + 1}, "speed.total"),
        ({"total": 1.5}, "speed.total"),
        ({"hint": {1: 0}}, "speed.hint.1"),
        ({"hint": {1: SLOWEST / 2}}, "speed.hint.1"),
        ({"hint": {1: -3}}, "speed.hint.1"),
        ({"hint": {1: float("nan")}}, "speed.hint.1"),
        ({"hint": {1: 2 * FASTEST}}, "speed.hint.1"),
        ({"hint": {0: 1}}, "speed.hint.0"),
        ({"unit": ""}, "speed.unit"),
        ({"unit": "x" * 33}, "speed.unit"),
        ({"unit": "a\x1b[2J"}, "speed.unit"),
        ({"rate": 1}, "speed.rate"),
    ],
)
def test_bounds(speed: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        elastic(**speed)
    assert ".".join(map(str, refused.value.errors()[0]["loc"])).startswith(said)


def test_a_hint_tells_of_a_few_sizes() -> None:
    for sizes in (MOST_HINTS, MOST_HINTS + 1):
        told = {"group": "w", "workers": {"max": 512}, "speed": {"hint": dict.fromkeys(range(1, sizes + 1), 1.0)}}
        if sizes <= MOST_HINTS:
            assert len(Elastic.model_validate(told).speed.hint) == sizes
            continue
        with pytest.raises(ValidationError, match=r"speed\.hint"):
            Elastic.model_validate(told)


def test_a_hint_is_for_sizes_that_the_job_may_have() -> None:
    with pytest.raises(ValidationError, match=r"speed.hint: 3 is none of the job's sizes; give speeds at sizes that"):
        elastic(hint={1: 1.0, 3: 2.0})


def test_cpu_is_a_range_of_what_each_worker_may_have() -> None:
    found = Elastic.model_validate({"group": "w", "sizes": [2], "cpu": {"min": "250m", "max": 2}})
    assert found.cpu is not None
    assert (found.cpu.min, found.cpu.max) == (250, 2000)
    assert Elastic.model_validate_json(found.model_dump_json()) == found
    assert Elastic.model_validate({"group": "w", "sizes": [2]}).cpu is None


@pytest.mark.parametrize(
    ("cpu", "said"),
    [
        ({"min": 0, "max": 1}, "min must be more than zero"),
        ({"min": 2, "max": "500m"}, "min is more than max"),
        ({"max": 1}, "Field required"),
        ({"min": 1, "max": "2Gi"}, "has an unknown CPU unit"),
        ({"min": 1, "max": 2, "most": 3}, "Extra inputs are not permitted"),
    ],
)
def test_bounds_of_cpu(cpu: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Elastic.model_validate({"group": "w", "sizes": [1], "cpu": cpu})
