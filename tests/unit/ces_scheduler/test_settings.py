"""What the scheduler's settings admit, and what is said of the rest."""

import asyncio

import pytest
from pydantic import ValidationError

from ces_common.queuefile import QueueFile
from ces_common.service import BadSetup
from ces_core.queue.parameters import Parameters
from ces_core.registry import available
from ces_scheduler.__main__ import SchedulerSettings, run
from ces_scheduler.cycle_input import STARTS, parameters_of


async def test_an_unknown_solver_is_refused_with_those_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CES_SOLVER", "oracle")
    with pytest.raises(BadSetup) as caught:
        await run(SchedulerSettings(), asyncio.Event())
    assert str(caught.value).startswith("CES_SOLVER: no solver is called 'oracle'")
    for name in available():
        assert name in str(caught.value)


def test_a_queue_file_that_says_nothing_has_the_cores_defaults() -> None:
    assert parameters_of(QueueFile()) == Parameters(starts=STARTS)


@pytest.mark.parametrize("wrong", ["-1", "inf", "nan", "soon"])
def test_a_time_limit_is_a_number_of_seconds(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("CES_SOLVE_TIME_LIMIT_S", wrong)
    with pytest.raises(ValidationError) as caught:
        SchedulerSettings()
    assert caught.value.errors()[0]["loc"] == ("solve_time_limit_s",)
