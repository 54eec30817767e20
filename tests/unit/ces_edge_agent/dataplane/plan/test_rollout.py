"""A change that fails half-way: who fails keeps what he had, who does not gets what he was to have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from fake_kernel import take
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_common.messages.desired import DesiredNetwork, Endpoint, FlowClass, LinkDevice, PolicyRoute, SubnetRoute
from ces_common.shares import LEAST_RATE
from ces_edge_agent.dataplane.plan.derivation import NODE, Derived, Facts, derive
from ces_edge_agent.dataplane.plan.diff import Step, diff, makes_room
from ces_edge_agent.dataplane.plan.objects import ROOT, Address, KernelObject, Key, Route, Rule, ShapedClass, Shaper
from ces_edge_agent.dataplane.plan.rollout import carry_out, inverse
from ces_edge_agent.ports import DataPlaneError

MBIT = 1_000_000
FACTS = Facts(mtu={"to-n1": 1500, "to-n3": 1500}, sandboxes={"a": 1, "b": 2, "c": 3})


def link(peer: int) -> LinkDevice:
    return LinkDevice(
        peer=f"n{peer}",
        device=f"to-n{peer}",
        kind="veth",
        bandwidth=100 * MBIT,
        best_effort=5 * MBIT,
        gateway=f"10.{peer}.0.1",
    )


def flow(job: str, number: int, via: str, rate: int, **parts: Any) -> FlowClass:
    dst = f"10.{via[1:]}.0.{number}"
    return FlowClass(
        job=job, number=number, kind="data", via=via, src=f"10.2.0.{number}", dst=dst, rate=rate * MBIT, **parts
    )


def document(endpoints: str, classes: list[FlowClass], policies: list[PolicyRoute], generation: int) -> DesiredNetwork:
    return DesiredNetwork(
        node="n2",
        generation=generation,
        router="10.2.0.1",
        subnet="10.2.0.0/24",
        links=[link(1), link(3)],
        subnets=[SubnetRoute(subnet=f"10.{host}.0.0/24", via=f"n{host}") for host in (1, 3)],
        endpoints=[
            Endpoint(allocation=job, job=f"{job}.1", address=f"10.2.0.{ord(job)}", hostname=job) for job in endpoints
        ],
        policies=policies,
        classes=classes,
    )


def policy(job: str, via: str) -> PolicyRoute:
    return PolicyRoute(job=job, src="10.1.0.9", dst="10.9.0.9", via=via)


# Rates of a go up and down, and its way changes; those of b as well; c comes, d goes.
BEFORE = document(
    "ab",
    [
        flow("a.1", 1, "n1", 10), flow("a.1", 2, "n1", 20), flow("a.1", 3, "n3", 5), flow("b.1", 4, "n3", 30),
        flow("b.1", 5, "n1", 7, ceil=20 * MBIT), flow("d.1", 6, "n1", 1), flow("d.1", 8, "n3", 1),
    ],
    [policy("a.1", "n1"), PolicyRoute(job="d.1", src="10.1.0.7", dst="10.3.0.7", via="n3")],
    generation=1,
)  # fmt: skip
AFTER = document(
    "abc",
    [
        flow("a.1", 1, "n1", 20), flow("a.1", 2, "n1", 8), flow("a.1", 3, "n1", 5), flow("b.1", 4, "n3", 15),
        flow("b.1", 5, "n1", 9), flow("c.1", 7, "n3", 10),
    ],
    [policy("a.1", "n3")],
    generation=2,
)  # fmt: skip


@dataclass
class World:
    """A kernel that has what one document wants, and refuses some steps on the way to another."""

    before: Derived = field(default_factory=lambda: derive(BEFORE, FACTS))
    after: Derived = field(default_factory=lambda: derive(AFTER, FACTS))
    refused: Callable[[Step], bool] = lambda step: False
    on_step: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.state = dict(self.before.items)
        self.shares = self.before.shares | self.after.shares

    def roll_out(self) -> dict[str, str]:
        steps = diff(self.after.items.values(), self.state.values())
        return carry_out(steps, self.shares, self.after, self.perform)

    def perform(self, step: Step) -> None:
        if self.refused(step):
            raise DataPlaneError(f"cannot {step}: refused")
        take(step, self.state)
        self.on_step()

    def share(self, job: str) -> dict[Key, KernelObject]:
        return {key: item for key, item in self.state.items() if self.shares.get(key) == {job}}

    def was(self, job: str) -> dict[Key, KernelObject]:
        return {key: item for key, item in self.before.items.items() if self.before.shares.get(key) == {job}}

    def keeps(self, job: str) -> dict[Key, KernelObject]:
        """What a job has that fails: what it had, but for the room that it was to leave to others."""
        left = {step.item.key: step.item for step in STEPS if makes_room(step) and not self.refused(step)}
        return {key: left.get(key, item) for key, item in self.was(job).items()}

    def shall_be(self, job: str) -> dict[Key, KernelObject]:
        return {key: item for key, item in self.after.items.items() if self.after.shares.get(key) == {job}}


STEPS = diff(derive(AFTER, FACTS).items.values(), derive(BEFORE, FACTS).items.values())


def test_an_order_that_nothing_hinders_is_carried_out_whole() -> None:
    world = World()
    assert world.roll_out() == {}
    assert world.state == world.after.items


@pytest.mark.parametrize("place", range(len(STEPS)), ids=lambda place: str(STEPS[place]).replace(" ", "-"))
def test_what_fails_half_way_is_as_it_was_and_all_else_as_it_shall_be(place: int) -> None:
    world = World(refused=lambda step: step == STEPS[place])
    failed = world.roll_out()
    assert all(f"cannot {STEPS[place]}: refused" in reason for reason in failed.values())
    for job in ("a.1", "b.1", "c.1"):
        if STEPS[place].action == "delete" and world.shares.get(STEPS[place].item.key) == {job}:
            left = {key: item for key, item in world.share(job).items() if key not in world.shall_be(job)}
            assert world.share(job) == world.shall_be(job) | left
            if any(isinstance(item, (Rule, Route)) for item in left.values()):  # a way that stays keeps its classes
                assert world.share(job) == world.was(job) | world.shall_be(job)
        else:
            assert world.share(job) == (world.keeps(job) if job in failed else world.shall_be(job))
    common = {key: item for key, item in world.state.items() if key in world.before.common}
    assert common == {key: world.before.items[key] for key in world.before.common}
    assert (NODE in failed) == (STEPS[place].action == "delete")
    world.refused = lambda step: False
    assert world.roll_out() == {}
    assert world.state == world.after.items


@pytest.mark.parametrize("place", range(len(STEPS)))
def test_no_flow_has_less_at_any_moment_than_before_or_after(place: int) -> None:
    def least(key: Key) -> int | None:
        found = [each.items.get(key) for each in (world.before, world.after)]
        return min((item.rate for item in found if isinstance(item, ShapedClass)), default=None) if all(found) else None

    def look() -> None:
        for key in world.before.items.keys() & world.after.items.keys():
            item = world.state[key]
            if isinstance(item, ShapedClass):
                assert item.rate >= (least(key) or 0)

    world = World(refused=lambda step: step == STEPS[place])
    world.on_step = look
    world.roll_out()


def promised(items: Iterable[KernelObject], device: str) -> int:
    """Rates of all leaves of a device together."""
    leaves = (item for item in items if isinstance(item, ShapedClass) and item.parent != ROOT)
    return sum(leaf.rate for leaf in leaves if leaf.device == device)


FULL = 94 * MBIT  # what flows may have of a link
PLACES = st.tuples(st.sampled_from(["n1", "n3"]), st.integers(0, 5))  # a flow's way, and its weight; 0: it is not there


def filled(places: Sequence[tuple[str, int]], generation: int) -> Derived:
    """Flows of the jobs a, b and c, two each, that have all of their links between them."""
    sums = {via: sum(weight for other, weight in places if other == via) for via in ("n1", "n3")}
    there = [(number, "abc"[number // 2], via, weight) for number, (via, weight) in enumerate(places) if weight]
    classes = [
        flow(f"{job}.1", number + 1, via, 1).model_copy(
            update={"rate": FULL * weight // sums[via], "dst": f"10.9.0.{number}"}
        )
        for number, job, via, weight in there
    ]
    policies = [PolicyRoute(job=each.job, src=each.src, dst=each.dst, via=each.via) for each in classes]
    return derive(document("abc", classes, policies, generation), FACTS)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), before=st.lists(PLACES, min_size=6, max_size=6), after=st.lists(PLACES, min_size=6, max_size=6))
def test_no_link_is_promised_twice_whatever_fails(
    data: st.DataObject, before: list[tuple[str, int]], after: list[tuple[str, int]]
) -> None:
    world = World(before=filled(before, 1), after=filled(after, 2))
    steps = diff(world.after.items.values(), world.before.items.values())
    refused = data.draw(st.lists(st.sampled_from(steps), max_size=3)) if steps else []
    world.refused = lambda step: step in refused
    world.roll_out()
    for device in ("to-n1", "to-n3"):
        least = len(before) * LEAST_RATE  # no class is lowered below that
        assert promised(world.state.values(), device) <= 100 * MBIT + least
    world.refused = lambda step: False
    assert world.roll_out() == {}
    assert world.state == world.after.items


def test_what_a_job_was_to_leave_is_not_given_back_when_it_fails() -> None:
    """The manager has given it to another."""
    before, after = (
        filled([("n1", 3), ("n1", 1)] + [("n1", 2)] * 2 + [("n3", 1)] * 2, 1),
        filled([("n1", 1), ("n3", 1)] + [("n1", 3)] * 2 + [("n3", 1)] * 2, 2),
    )
    world = World(before=before, after=after, refused=lambda step: isinstance(step.item, Rule) and step.action == "add")
    assert set(world.roll_out()) == {"a.1"}
    assert world.share("b.1") == world.shall_be("b.1")
    first, second = ("class", "to-n1", 2), ("class", "to-n1", 4)
    assert world.state[first] == after.items[first]
    stays = world.state[second]  # its way is there as well
    assert isinstance(stays, ShapedClass)
    assert 0 < stays.rate == stays.ceil <= 100 * MBIT - promised(after.items.values(), "to-n1")


def test_what_cannot_be_derived_changes_nothing_of_its_job() -> None:
    world = World(after=derive(AFTER, Facts(mtu=FACTS.mtu, sandboxes={"b": 2, "c": 3})))
    assert world.roll_out() == {"a.1": "allocation a has no network namespace to connect"}
    assert world.share("a.1") == world.keeps("a.1")
    assert world.share("b.1") == world.shall_be("b.1")


def test_after_a_restart_nothing_goes_that_may_be_of_who_fails() -> None:
    world = World(after=derive(AFTER, Facts(mtu=FACTS.mtu, sandboxes={"b": 2, "c": 3})))
    world.shares = world.after.shares
    stale = Address("lo", "10.8.0.1")  # the node's own
    world.state[stale.key] = stale
    assert set(world.roll_out()) == {"a.1"}
    assert world.state.keys() >= world.was("a.1").keys()
    assert world.state.keys() >= world.after.items.keys() - world.shall_be("a.1").keys()
    assert stale.key not in world.state
    world.after = derive(AFTER, FACTS)
    world.shares = world.after.shares
    assert world.roll_out() == {}
    assert world.state == world.after.items


@pytest.mark.parametrize("refused", ["add rule", "add route", "add filter for class e"])
def test_a_recreated_shaper_takes_nothing_from_who_fails(refused: str) -> None:
    """Somebody replaced it: the classes below are as they were, as far as anybody can tell."""
    world = World(refused=lambda step: str(step).startswith(refused))
    for device in ("to-n1", "to-n3"):
        world.state["shaper", device] = Shaper(device, default=-1)
    failed = world.roll_out()
    assert failed
    for job in failed.keys() - {NODE, "c.1"}:
        assert world.share(job).keys() >= (world.was(job).keys() & world.shall_be(job).keys())
    assert world.share("c.1") == ({} if "c.1" in failed else world.shall_be("c.1"))
    world.refused = lambda step: False
    assert world.roll_out() == {}
    assert world.state == world.after.items


def test_what_cannot_be_taken_back_either_is_left_to_the_next_document() -> None:
    last = max(place for place, step in enumerate(STEPS) if step.action != "delete" and not step.old)
    world = World()
    (job,) = world.shares[STEPS[last].item.key]
    stubborn = next(step for step in STEPS if step.old and world.shares[step.item.key] == {job})
    world.refused = lambda step: step in (STEPS[last], inverse(stubborn))
    assert set(world.roll_out()) == {job}
    assert world.state[stubborn.item.key] == stubborn.item
    world.refused = lambda step: False
    assert world.roll_out() == {}
    assert world.state == world.after.items


def test_links_stay_when_the_only_job_that_uses_them_fails() -> None:
    nothing = Derived()
    world = World(before=nothing, refused=lambda step: "route to 10.2.0.97" in str(step))
    failed = world.roll_out()
    assert set(failed) == {"a.1"}
    assert world.share("a.1") == {}
    assert world.state.keys() >= world.after.common
