"""What could have been kept of a day at all."""

from __future__ import annotations

from dataclasses import replace

from ces_core.adjustment.terms import TaskFacts
from ces_sim.adjustment.course import run
from ces_sim.adjustment.oracle import at_most
from ces_sim.adjustment.town import Conditions, day
from ces_sim.adjustment.ways import SolvingAnew

QUIET = Conditions(0, (), (0.0,) * 6, False, 30.0)
SWAMPED = replace(QUIET, slow=tuple((wire, 100.0) for wire in range(7)), busy=(6.0,) * 6)
FACTS = {name: TaskFacts(3.0) for name in ("track", "render", "record")}


def test_a_quiet_day_can_be_kept_without_a_move() -> None:
    bounds = at_most([QUIET] * 5)
    assert (bounds.anyhow, bounds.knowing, bounds.times) == (1.0, 1.0, 0)


def test_windows_in_which_no_plan_is_in_time_are_lost_to_everybody() -> None:
    bounds = at_most([QUIET] * 3 + [SWAMPED])
    assert (bounds.anyhow, bounds.knowing, bounds.times) == (0.75, 0.75, 0)


def test_no_way_keeps_more() -> None:
    hour = day(3, 10.0)[:240]
    bounds = at_most(hour)
    kept = run(SolvingAnew(FACTS), hour, FACTS).kept
    assert sum(kept) / len(kept) <= bounds.knowing <= bounds.anyhow
