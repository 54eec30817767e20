"""Steady shares: one size from begin to end, and nobody resized without need."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random

import pytest

from ces_core.malleable.free import FreeSteps
from ces_core.malleable.model import MalleableJob, Pieces, Running, SpeedProfile
from ces_core.malleable.policy import Decision, Moment
from ces_core.malleable.steady import Steady, first_free

ONE_EACH = SpeedProfile((1, 2, 3, 4), (1.0, 2.0, 3.0, 4.0))
NEVER_S = 1e9  # of a resize: as if there were none


def job(name: str, left: float, due_s: float, size: int = 0) -> Running:
    """One that runs, where it has a size."""
    return Running(MalleableJob(name, 0.0, left, due_s, ONE_EACH), left, size, stays=size > 0)


def asked(
    *jobs: Running, capacity: int = 4, cost_s: float = 0.0, arrived: frozenset[str] = frozenset(), booked: Pieces = ()
) -> Decision:
    return Steady(cost_s, 1.0)(Moment(0.0, capacity, jobs, arrived, booked=booked))


def test_a_job_gets_the_smallest_size_that_is_in_time_until_its_end() -> None:
    """Three GPUs take 40 s, two 60 s."""
    found = asked(job("j", 120.0, 50.0), job("other", 400.0, 500.0))
    assert (found.least["j"], found.ends["j"]) == (3, 40.0)


def test_it_begins_when_that_many_stay_free() -> None:
    """More than one are free from 20 s on, and two would take 45 s."""
    found = asked(job("j", 90.0, 60.0), booked=[(0.0, 20.0, 3)])
    assert (found.least["j"], found.begins, found.ends["j"]) == (0, {"j": (20.0, 3)}, 50.0)
    assert found.until_s == 20.0
    assert "j" not in found.sizes


def test_a_start_takes_time() -> None:
    """Three take 40 s."""
    assert Steady(0.0, 1.0, start_s=10.0)(Moment(0.0, 4, [job("j", 120.0, 50.0)])).least == {"j": 3}
    assert Steady(0.0, 1.0, start_s=10.0)(Moment(0.0, 4, [job("j", 120.0, 49.0)])).least == {"j": 4}
    assert Steady(0.0, 1.0, start_s=10.0)(Moment(0.0, 4, [job("j", 120.0, 49.0, size=4)])).ends == {"j": 30.0}


def test_the_earlier_deadline_comes_first() -> None:
    found = asked(job("late", 80.0, 100.0), job("early", 80.0, 25.0))
    assert found.least == {"early": 4, "late": 0}
    assert found.begins == {"late": (20.0, 1)}


def test_those_that_run_keep_their_sizes_while_that_makes_nobody_late() -> None:
    """With three until 20 s, the one that comes begins then; though it could begin now if the other had one only."""
    runs, comes = job("runs", 60.0, 100.0, size=3), job("comes", 80.0, 60.0)
    found = asked(runs, comes, arrived=frozenset({"comes"}), cost_s=10.0)
    assert (found.refused, found.sizes["runs"], found.begins) == (frozenset(), 3, {"comes": (20.0, 2)})
    assert found.least["runs"] == 1, "what it would do with"


def test_they_give_what_they_can_spare_where_somebody_would_be_late() -> None:
    """In time with one, but for a resize that takes 50 s; then it is with two."""
    runs, comes = job("runs", 60.0, 100.0, size=3), job("comes", 75.0, 38.0)
    found = asked(runs, comes, arrived=frozenset({"comes"}))
    assert (found.least, found.refused) == ({"runs": 1, "comes": 2}, frozenset())
    assert asked(runs, cost_s=50.0).least == {"runs": 2}


def test_room_that_others_must_make_takes_time() -> None:
    """With three of four it takes 25 s, and 5 s until the other one has shrunk."""
    runs, comes = job("runs", 60.0, 100.0, size=3), job("comes", 75.0, 30.0)
    found = asked(runs, comes, arrived=frozenset({"comes"}), cost_s=5.0)
    assert (found.least, found.ends["comes"]) == ({"runs": 1, "comes": 3}, 30.0)
    assert asked(runs, job("comes", 75.0, 29.0), arrived=frozenset({"comes"}), cost_s=5.0).refused == {"comes"}


def test_nobody_gives_what_it_would_have_to_take_back() -> None:
    """ElasticFlow would have it shrink to one now, and grow to all four at 45 s."""
    found = asked(job("runs", 100.0, 60.0, size=3), job("comes", 135.0, 46.0), arrived=frozenset({"comes"}))
    assert (found.least["runs"], found.refused) == (2, {"comes"})


def test_one_that_runs_and_is_in_time_with_no_single_size_changes_on_the_way() -> None:
    """Two until 20 s, and then all four: 20 s later it is done. Two alone take 60 s. What the resize takes must be left
    before its deadline."""
    booked = [(0.0, 20.0, 2)]
    for cost_s in (0.0, 5.0):
        found = asked(job("j", 120.0, 40.0 + cost_s, size=2), booked=booked, cost_s=cost_s)
        assert (found.least["j"], found.ends["j"], found.until_s) == (2, 40.0, 20.0)
    assert asked(job("j", 120.0, 40.0, size=2), booked=booked, cost_s=5.0).ends["j"] > 40.0
    assert asked(job("j", 120.0, 40.0), booked=booked, arrived=frozenset({"j"})).refused == {"j"}, "nor promised that"


def test_one_that_needs_more_grows_and_pays_for_it() -> None:
    """Two take 60 s, three 40 s and the resize."""
    assert asked(job("j", 120.0, 50.0, size=2), cost_s=5.0).least == {"j": 3}
    assert asked(job("j", 120.0, 50.0, size=2), cost_s=15.0).least == {"j": 4}


def test_who_would_be_late_or_make_late_is_refused_with_its_earliest_end() -> None:
    runs, comes = job("runs", 120.0, 40.0, size=3), job("comes", 80.0, 30.0)
    found = asked(runs, comes, arrived=frozenset({"comes"}))
    assert (found.refused, found.ends["comes"]) == ({"comes"}, 60.0), "with four, once those are free"
    assert found.least["runs"] == 3


def test_one_after_the_other_is_let_in() -> None:
    jobs = [job(name, 80.0, 25.0) for name in "abc"]
    assert asked(*jobs, arrived=frozenset("abc")).refused == {"b", "c"}
    assert asked(*jobs, capacity=8, arrived=frozenset("abc")).refused == {"c"}


def test_best_effort_is_never_refused_and_waits_for_what_is_left() -> None:
    found = asked(job("j", 80.0, 20.0), job("rest", 40.0, math.inf), arrived=frozenset({"j", "rest"}))
    assert (found.refused, found.begins) == (frozenset(), {"rest": (20.0, 1)})


def test_what_is_left_goes_to_whom_it_delays_nobody_else() -> None:
    """Two of four are free for 20 s, then another one needs them: one may have a third until its end, not longer."""
    booked = [(20.0, 100.0, 2)]
    assert asked(job("j", 60.0, 30.0, size=2), booked=booked).sizes == {"j": 4}, "done at 15 s"
    assert asked(job("j", 100.0, 60.0, size=2), booked=booked).sizes == {"j": 2}, "not done at 20 s"


@pytest.mark.parametrize(
    ("size", "lasts_s", "begin_s"), [(1, 99.0, 0.0), (2, 5.0, 0.0), (2, 11.0, 30.0), (5, 1.0, None)]
)
def test_first_free(size: int, lasts_s: float, begin_s: float | None) -> None:
    free = FreeSteps([0.0, 10.0, 30.0], [2, 1, 4])
    assert first_free(free, size, lasts_s) == begin_s


@dataclass
class World:
    """Jobs come, run at exact speeds from when they may, and are never resized."""

    capacity: int
    jobs: dict[str, MalleableJob]
    left: dict[str, float] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    ended: dict[str, float] = field(default_factory=dict)

    def run(self) -> None:
        now_s, coming = 0.0, sorted(self.jobs.values(), key=lambda job: (job.arrived_s, job.name))
        while coming or self.left:
            arrived = frozenset(job.name for job in coming if job.arrived_s <= now_s)
            coming = [job for job in coming if job.name not in arrived]
            self.left |= {name: self.jobs[name].work for name in arrived}
            until_s = self._asked(now_s, arrived)
            ends = [now_s + self.left[name] / self._rate(name) for name in self.sizes]
            then_s = min([*ends, until_s, *(job.arrived_s for job in coming)])
            for name in list(self.sizes):
                self.left[name] -= (then_s - now_s) * self._rate(name)
                if self.left[name] <= 1e-6:
                    self.ended[name] = then_s
                    del self.left[name], self.sizes[name]
            now_s = then_s

    def _asked(self, now_s: float, arrived: frozenset[str]) -> float:
        active = [
            Running(self.jobs[name], left, self.sizes.get(name, 0), stays=name in self.sizes)
            for name, left in self.left.items()
        ]
        found = Steady(NEVER_S, 1.0)(Moment(now_s, self.capacity, active, arrived))
        assert found.refused <= arrived
        self.refused |= found.refused
        for name in found.refused:
            del self.left[name]
        for name, size in found.sizes.items():
            assert self.sizes.setdefault(name, size) <= size, "nobody has to shrink"
        assert sum(self.sizes.values()) <= self.capacity
        return found.until_s

    def _rate(self, name: str) -> float:
        return self.jobs[name].profile.rate(self.sizes[name])


@pytest.mark.parametrize("seed", range(60))
def test_what_is_promised_comes_true_without_a_single_resize(seed: int) -> None:
    draw = Random(seed)
    jobs = {}
    for number in range(draw.randint(1, 12)):
        power, least = draw.choice([0.5, 0.8, 1.0]), draw.choice([1, 1, 2, 5])
        profile = SpeedProfile.of({n: n**power for n in range(least, draw.choice([least, 8]) + 1)})
        work, at_s = draw.uniform(5.0, 300.0), draw.uniform(0.0, 100.0)
        due_s = at_s + work / draw.choice(profile.rates) * draw.uniform(0.9, 3.0)
        jobs[f"j{number}"] = MalleableJob(f"j{number}", at_s, work, due_s, profile)
    world = World(8, jobs)
    world.run()
    assert world.ended.keys() == jobs.keys() - world.refused
    assert all(end <= jobs[name].deadline_s + 1e-3 for name, end in world.ended.items())
