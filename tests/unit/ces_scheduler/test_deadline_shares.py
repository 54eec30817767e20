"""What deadlines ask for: sizes that jobs need, those that cannot end in time, and how the cluster is counted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from cluster_state import node, view_of
from malleable_records import LINKS, NAMES, malleable, places, rigid
from scheduler_steps import Clock

from ces_common.jobfile import Task
from ces_common.messages.records import JobRecord, NodeRecord
from ces_common.states import JobState
from ces_core.malleable.steady import Steady
from ces_core.queue.parameters import Parameters, Tenant
from ces_scheduler.deadline_shares import Judgement, judge
from ces_scheduler.deadlines import time_of
from ces_scheduler.job_speeds import left_of
from ces_scheduler.offer import Offer, offer_of
from ces_scheduler.slots import Ground, Pool, fitting

NOW_S = Clock().time().timestamp()


def offered(*jobs: JobRecord, nodes: Sequence[NodeRecord] | None = None) -> Offer:
    """Four nodes of two cores, or others, with these jobs on them."""
    return offer_of(view_of(places() if nodes is None else nodes, LINKS, jobs))


def judged(*jobs: JobRecord, cost_s: float = 0.0, parameters: Parameters | None = None, nodes: Any = None) -> Judgement:
    """Those without allocations wait."""
    waiting = [each for each in jobs if not each.allocations]
    offer = offered(*(each for each in jobs if each.allocations), nodes=nodes)
    return judge(offer, waiting, NOW_S, cost_s, parameters or Parameters())


def least(found: Judgement) -> dict[str, int]:
    return {name: share.least for name, share in found.shares.items()}


def ends(found: Judgement) -> dict[str, float]:
    """Seconds from now."""
    return {name: pytest.approx(share.end_s - NOW_S, abs=1.0) for name, share in found.shares.items()}


def runs_for(record: JobRecord, duration_s: float, on: Sequence[str]) -> JobRecord:
    """A rigid job that has just begun on these nodes and says how long it runs."""
    placed = malleable(record.name, list(on))
    begun = {"state": JobState.RUNNING, "expected_s": duration_s, "started_at": Clock().time()}
    return record.model_copy(update=begun | {"allocations": placed.allocations})


def test_without_deadlines_nothing_is_asked_for() -> None:
    assert judged(malleable("m", ["a"], work=100.0), rigid("r", 2)) == Judgement()


def test_a_job_needs_the_fewest_workers_that_end_it_in_time() -> None:
    found = judged(malleable("m", ["a"], work=240.0, due_s=100.0))
    assert least(found) == {"m": 3}
    assert found.shares["m"].size == 8, "and gets all that is left"


@pytest.mark.parametrize(("ran_s", "needs"), [(200.0, 3), (400.0, 1)])
def test_who_tells_no_steps_has_no_claim_after_a_while(ran_s: float, needs: int) -> None:
    assert least(judged(malleable("m", ["a"], work=240.0, due_s=100.0, ran_s=ran_s, speeds=None))) == {"m": needs}


def test_a_resize_is_kept_in_hand() -> None:
    assert least(judged(malleable("m", ["a"], work=240.0, due_s=100.0), cost_s=40.0)) == {"m": 4}
    late = judged(malleable("m", ["a"], work=800.0, due_s=100.0), cost_s=40.0)
    assert (least(late), late.shares["m"].kept) == ({"m": 1}, False), "nobody shrinks for what would be in vain"


def test_a_start_takes_two_seconds() -> None:
    assert judged(malleable("m", [], work=480.0, due_s=62.0)).shares["m"].kept
    assert judged(malleable("m", [], work=480.0, due_s=61.0)).refused
    beside = runs_for(rigid("r", 2), 1000.0, ["a", "b"])
    assert judged(beside, malleable("m", [], work=360.0, due_s=69.0)).refused == {}, "beside others, a tenth in hand"
    assert judged(beside, malleable("m", [], work=360.0, due_s=68.0)).refused


def test_a_rigid_job_needs_no_time_for_a_resize() -> None:
    due = {"deadline": malleable("m", [], work=1.0, due_s=1.0).deadline, "expected_s": 40.0}
    waits = rigid("r", 4).model_copy(update=due | {"deadline_at": Clock().time() + timedelta(seconds=60)})
    assert judged(waits, cost_s=30.0).refused == {}
    other = runs_for(rigid("other", 8), 15.0, ["a", "b", "c", "d"] * 2)
    assert judged(other, waits, cost_s=30.0).refused == {}, "nor beside others"


def test_one_that_is_ahead_needs_its_smallest_size_and_is_expected_at_its_present_one() -> None:
    found = judged(malleable("m", ["a", "b"], work=20.0, due_s=100.0))
    assert least(found) == {"m": 1}
    assert ends(found) == {"m": 10.0}


def test_the_earlier_deadline_comes_first_and_the_later_waits_for_its_workers() -> None:
    """Of eight workers, six for 100 s and two, then as many as it takes."""
    first = malleable("first", ["a"], work=600.0, due_s=100.0)
    second = malleable("second", ["b"], work=1000.0, due_s=200.0)
    found = judged(first, second)
    assert least(found) == {"first": 6, "second": 2}
    assert all(share.kept for share in found.shares.values())


@pytest.mark.parametrize(("left_s", "size", "later"), [(0.6, 4, False), (5.0, 0, True)])
def test_one_that_begins_in_a_moment_needs_what_it_begins_with(left_s: float, size: int, later: bool) -> None:
    """Another one ends until then. With fewer workers, for which there is room now, it would be late."""
    ends = runs_for(rigid("ends", 6), left_s, ["a", "a", "b", "b", "c", "c"])
    waits = malleable("waits", [], work=240.0, due_s=70.0 + left_s)
    found = judged(ends, waits)
    assert (found.shares["waits"].least, found.begins_later("waits")) == (size, later)


def test_a_deadline_that_cannot_be_kept_gives_no_claim() -> None:
    late, other = malleable("late", ["a"], work=900.0, due_s=100.0), malleable("other", ["b"], work=600.0, due_s=100.0)
    found = judged(late, other)
    assert least(found) == {"late": 1, "other": 6}
    assert not found.shares["late"].kept
    assert found.shares["other"].kept


def test_who_cannot_end_in_time_is_refused_with_its_earliest_end() -> None:
    found = judged(malleable("m", [], work=1600.0, due_s=100.0))
    assert found.refused == {"m": pytest.approx(NOW_S + 202.0, abs=0.1)}
    assert found.shares == {}


def test_the_admitted_stay_in_time() -> None:
    """Seven of eight workers are needed for 86 s; eight take 62.5 s then, and one from now on longer."""
    inside = malleable("inside", ["a"], work=600.0, due_s=100.0, admitted=True)
    asks = malleable("asks", [], work=500.0, due_s=100.0)
    found = judged(inside, asks)
    assert found.refused == {"asks": pytest.approx(NOW_S + 150.2, abs=0.1)}
    fits = judged(inside, malleable("asks", [], work=500.0, due_s=200.0))
    assert fits.refused == {}
    assert fits.shares["asks"].kept


def test_who_may_be_late_neither_is_refused_nor_keeps_anybody_out() -> None:
    late = malleable("late", [], work=1600.0, due_s=100.0, policy="best-effort")
    assert not judged(late).shares["late"].kept
    inside = malleable("inside", ["a"], work=600.0, due_s=100.0, policy="best-effort")
    found = judged(inside, malleable("asks", [], work=500.0, due_s=100.0))
    assert (found.refused, found.shares["asks"].kept, found.shares["inside"].kept) == ({}, True, False)
    assert least(found) == {"inside": 1, "asks": 6}


def test_one_that_had_a_plan_is_never_refused() -> None:
    again = malleable("again", [], work=1600.0, due_s=100.0, attempt=2)
    assert judged(again).refused == {}


def test_of_two_that_come_together_the_elder_is_admitted() -> None:
    elder = malleable("z", [], work=600.0, due_s=100.0, submitted_at=Clock().time() - timedelta(seconds=9))
    younger = malleable("a", [], work=600.0, due_s=100.0, submitted_at=Clock().time())
    assert judged(younger, elder).refused.keys() == {"a"}


def test_jobs_without_a_deadline_keep_their_smallest_size() -> None:
    others = [malleable(f"m{i}", [name]) for i, name in enumerate(NAMES)]
    found = judged(*others, malleable("asks", [], work=500.0, due_s=100.0))
    assert found.refused == {"asks": pytest.approx(NOW_S + 127.0, abs=0.1)}
    assert judged(*others, malleable("asks", [], work=350.0, due_s=100.0)).shares["asks"].kept


def test_nothing_is_taken_from_a_more_urgent_job_but_what_it_has_to_spare_for_no_one() -> None:
    urgent = malleable("urgent", NAMES, priority=80)
    found = judged(urgent, malleable("m", ["a"], work=500.0, due_s=100.0, priority=50))
    assert not found.shares["m"].kept
    less = malleable("less", NAMES, priority=20)
    assert least(judged(less, malleable("m", ["a"], work=500.0, due_s=100.0, priority=50)))["m"] == 5


def test_a_rigid_job_gives_its_place_back_when_it_says_and_else_never() -> None:
    asks = malleable("asks", [], work=620.0, due_s=200.0)
    ends_soon = runs_for(rigid("r", 4), 100.0, NAMES)
    assert judged(ends_soon, asks).shares["asks"].kept
    unknown = ends_soon.model_copy(update={"expected_s": None})
    assert judged(unknown, malleable("asks", [], work=900.0, due_s=200.0)).refused.keys() == {"asks"}
    full = runs_for(rigid("r", 8), 100.0, NAMES * 2).model_copy(update={"expected_s": None})
    assert judged(full, asks).refused == {"asks": math.inf}


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.RESCHEDULING, JobState.RUNNING])
def test_who_is_about_to_leave_keeps_nobody_out_for_good(state: JobState) -> None:
    """It is over, or to be placed again, or has run for longer than it said."""
    full = runs_for(rigid("r", 8), 100.0, NAMES * 2)
    full = full.model_copy(update={"state": state, "started_at": Clock().time() - timedelta(seconds=300)})
    assert judged(full, malleable("asks", [], work=690.0, due_s=100.0)).shares["asks"].kept
    if state is not JobState.RUNNING:
        grown = malleable("grown", NAMES * 2, state=state)
        assert judged(grown, malleable("asks", [], work=690.0, due_s=100.0)).shares["asks"].kept


def test_room_that_a_job_gives_back_for_a_moment_is_promised_to_nobody_else() -> None:
    again = malleable("again", NAMES * 2, work=600.0, due_s=100.0, state=JobState.RESCHEDULING, admitted=True)
    found = judged(again, malleable("asks", [], work=700.0, due_s=100.0))
    assert found.refused.keys() == {"asks"}
    assert found.shares["again"].kept


@pytest.mark.parametrize("policy", ["refuse", "best-effort"])
def test_of_many_that_are_late_half_are_given_up_at_once(monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    asked = []

    def counted(*how: Any, **more: Any) -> Steady:
        asked.append(how)
        return Steady(*how, **more)

    monkeypatch.setattr("ces_scheduler.deadline_shares.Steady", counted)
    nodes = [each.model_copy(update={"cpu": 40_000}) for each in places()]
    jobs = [malleable(f"j{i}", [NAMES[i % 4]], work=400.0, due_s=100.0 + i, policy=policy) for i in range(100)]
    promised = [malleable(f"p{i}", [NAMES[i % 4]], work=400.0, due_s=100.0 + i, admitted=True) for i in range(40)]
    found = judged(*jobs, *promised, nodes=nodes, cost_s=1.0)
    assert 0 < sum(share.kept for share in found.shares.values()) < 140
    assert len(asked) < 40


def test_a_rigid_job_is_fixed() -> None:
    due = {"deadline_at": Clock().time() + timedelta(seconds=90)}
    late = runs_for(rigid("r", 4), 100.0, NAMES).model_copy(update=due)
    assert not judged(late).shares["r"].kept
    waits = rigid("w", 6).model_copy(update=due | {"expected_s": 60.0})
    found = judged(malleable("m", NAMES, work=1e5, due_s=1e5), waits)
    assert found.shares["w"].kept
    assert found.shares["w"].least == 6, "all of it at once"
    assert not judged(waits.model_copy(update={"expected_s": 95.0})).shares["w"].kept


def test_a_job_that_is_past_its_deadline_is_late_whatever_it_says() -> None:
    past = {"deadline_at": Clock().time() - timedelta(seconds=1)}
    assert not judged(runs_for(rigid("r", 4), 0.0, NAMES).model_copy(update=past)).shares["r"].kept
    paused = malleable("m", ["a"], work=1.0, due_s=-1.0, state=JobState.PAUSED)
    assert not judged(paused).shares["m"].kept
    assert judged(malleable("m", ["a"], work=1.0, due_s=9.0, state=JobState.PAUSED)).shares == {}


def test_no_size_is_beyond_the_quota_of_its_tenant() -> None:
    half = Parameters(tenants=(Tenant("t", quota={"cpu": 0.5}), Tenant("default")))
    asks = malleable("asks", [], work=500.0, due_s=100.0, tenant="t")
    assert judged(asks, parameters=half).refused == {"asks": pytest.approx(NOW_S + 127.0, abs=0.1)}
    beside = malleable("m", ["a", "b"], tenant="t")
    assert judged(beside, malleable("asks", [], work=300.0, due_s=100.0, tenant="t"), parameters=half).refused


def test_a_quota_does_not_count_what_is_about_to_leave() -> None:
    half = Parameters(tenants=(Tenant("t", quota={"cpu": 0.5}), Tenant("default")))
    leaves = malleable("m", NAMES, tenant="t", state=JobState.RESCHEDULING)
    asks = malleable("asks", [], work=350.0, due_s=100.0, tenant="t")
    assert judged(leaves, asks, parameters=half).shares["asks"].kept
    assert judged(malleable("m", ["a"], tenant="t"), asks, parameters=half).refused


@pytest.mark.parametrize("away", [{"state": "unreachable"}, {"reclaimed": True}])
def test_nodes_that_may_be_back_make_a_refusal_doubtful(away: dict[str, object]) -> None:
    there = [each.model_copy(update=away) if each.name == "d" else each for each in places()]
    found = judged(malleable("m", [], work=700.0, due_s=100.0), nodes=there)
    assert (set(found.refused), found.doubtful) == ({"m"}, {"m"})
    found = judged(malleable("m", [], work=900.0, due_s=100.0), nodes=there)
    assert (set(found.refused), found.doubtful) == ({"m"}, frozenset())


def test_slots_are_counted_node_by_node_in_the_finest_workers() -> None:
    """A worker of three cores fits once on a node of four, one of a core four times."""
    nodes = [node(name, i + 1, cpu=4000) for i, name in enumerate(NAMES)]
    ground = Ground(offered(nodes=nodes))
    small = malleable("small", [], work=1.0, due_s=9.0)
    large = malleable("large", [], work=1.0, due_s=9.0)
    tasks = [task.model_copy(update={"cpu": 3000}) for task in large.tasks]
    large = large.model_copy(update={"tasks": tasks})
    assert fitting(ground, ground.free, tasks[0]) == 4
    pool = Pool.of(ground, [small, large], [], [])
    assert (pool.capacity, pool.slots(small, 3), pool.slots(large, 3)) == (16, 3, 12)


def test_jobs_for_which_another_resource_is_scarce_do_not_compete() -> None:
    nodes = [node(name, i + 1, cpu=8000, gpu=2) for i, name in enumerate(NAMES)]
    on_gpus = malleable("g", [], work=780.0, due_s=100.0)
    tasks = [Task(**{**task.model_dump(), "gpu": 1, "cpu": 100}) for task in on_gpus.tasks]
    on_gpus = on_gpus.model_copy(update={"tasks": tasks})
    on_cpus = malleable("c", [], work=780.0, due_s=100.0)
    assert judged(on_gpus, on_cpus, nodes=nodes).refused == {}


def test_a_job_that_cannot_be_reckoned_with_has_no_share_and_keeps_none_from_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def left(record: JobRecord, *more: Any) -> float | None:
        if record.id == "broken":
            raise OverflowError
        return left_of(record, *more)

    monkeypatch.setattr("ces_scheduler.deadline_members.left_of", left)
    broken, other = malleable("broken", ["a"], work=9.0, due_s=9.0), malleable("m", ["b"], work=240.0, due_s=100.0)
    assert least(judged(broken, other)) == {"m": 3}
    assert judged(broken).shares == {}


def test_a_job_as_slow_and_large_as_may_be_has_no_end_that_can_be_named() -> None:
    found = judged(malleable("m", [], work=10**15, hint={1: 1e-9}, due_s=3600.0))
    assert time_of(found.refused["m"]) is None


FINE = 10**6  # whole units of work in one of the world's


@dataclass
class World:
    """Malleable jobs on eight workers' places, with exact speeds and resizes that take no time."""

    left: dict[str, float]
    due_s: Mapping[str, float]
    rates: Mapping[str, Mapping[int, float]]
    sizes: dict[str, int] = field(default_factory=dict)
    admitted: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    ended: dict[str, float] = field(default_factory=dict)
    now_s: float = 0.0

    def records(self) -> list[JobRecord]:
        found, node = [], 0
        for name in sorted(self.left):
            if name in self.ended or name in self.refused:
                continue
            size = self.sizes.get(name, 0)
            on = [NAMES[(node + i) % 4] for i in range(size)]
            node += size
            hint = {n: rate * FINE for n, rate in self.rates[name].items()}
            more = {"work": math.ceil(self.left[name] * FINE), "hint": hint, "due_s": self.due_s[name] - self.now_s}
            found.append(malleable(name, on, admitted=name in self.admitted, **more))
        return found

    def step(self) -> None:
        """Sizes as judged, for as long as nobody needs another one."""
        found = judged(*self.records())
        assert not set(found.refused) & self.admitted
        self.refused |= set(found.refused)
        self.admitted |= found.shares.keys()
        self.sizes = {name: share.size for name, share in found.shares.items()}
        assert sum(self.sizes.values()) <= 8
        assert all(share.size >= share.least for share in found.shares.values())
        assert all(share.kept for share in found.shares.values())
        rates = {name: self.rates[name][size] if size else 0.0 for name, size in self.sizes.items()}
        spans = [self.left[name] / rate for name, rate in rates.items() if rate]
        span = min([*spans, max(found.until_s - NOW_S, 1.0)])
        for name, rate in rates.items():
            self.left[name] -= rate * span
            if self.left[name] <= 1e-6:
                self.ended[name] = self.now_s + span
                del self.sizes[name]
        self.now_s += span


@pytest.mark.parametrize("seed", range(8))
def test_with_exact_speeds_and_free_resizes_every_admitted_deadline_is_kept(seed: int) -> None:
    draw = Random(seed)
    names = [f"j{i}" for i in range(draw.randint(1, 5))]
    powers = {name: draw.choice([0.5, 0.8, 1.0]) for name in names}
    world = World(
        left={name: draw.uniform(10.0, 1500.0) for name in names},
        due_s={name: draw.uniform(20.0, 600.0) for name in names},
        rates={name: {n: n ** powers[name] for n in range(1, 9)} for name in names},
    )
    for _ in range(100):
        if world.left.keys() == world.ended.keys() | world.refused:
            break
        world.step()
    assert world.ended.keys() == world.admitted
    assert all(end <= world.due_s[name] + 1.0 for name, end in world.ended.items())
