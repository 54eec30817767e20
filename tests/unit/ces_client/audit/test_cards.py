"""The auditor follows GPU cards: each is one job's at a time, and every lie about that is found."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import pytest
from audit_logs import Fact, allocation, asked, done, found, job, numbered, plan, started

from ces_client.audit import Inventory, JobRequest
from ces_client.audit_inputs import judge

GPUS = (1000, 100, 2)
INVENTORY = Inventory(links={("a", "b"): 1000, ("b", "a"): 1000})


def node(name: str, change: str, cards: Sequence[str] = ("x", "y")) -> Fact:
    told = {"node": name, "change": change, "cpu": 1000, "memory": 100, "gpu": 2}
    return "node.changed", told | {"cards": [{"id": each, "memory": 16} for each in cards]}


START = [node(name, change) for name in "ab" for change in ("joined", "ready")]


def with_cards(facts: list[Fact], *cards: Sequence[str]) -> list[Fact]:
    """The same, where each task of the plan gets these."""
    changed = copy.deepcopy(facts)
    for kind, data in changed:
        if kind in ("plan.committed", "resize.committed"):
            for each, ids in zip(data["allocations"], cards, strict=True):
                each["cards"] = list(ids)
    return changed


def runs(name: str, *cards: Sequence[str], nodes: str = "ab", number: int = 1) -> list[Fact]:
    return [job("queued", None, name=name), *with_cards(started(name=name, nodes=nodes, number=number), *cards)]


def requests(gpu: int, *names: str) -> Inventory:
    return Inventory(links=INVENTORY.links, jobs={name: asked((10, 1, gpu), (10, 1, gpu)) for name in names})


def test_two_jobs_with_different_cards_are_right() -> None:
    story = [*START, *runs("j", ["x"], ["x"]), *runs("k", ["y"], ["y"], number=2), *done(), *done(name="k")]
    assert found(story, requests(1, "j", "k")) == ""


def test_a_card_of_two_jobs_is_found() -> None:
    story = [*START, *runs("j", ["x"], ["x"]), *runs("k", ["x"], ["y"], number=2)]
    text = found([*story, *done(), *done(name="k")], requests(1, "j", "k"))
    assert "card x of node a is overbooked: t-0 of job k gets it, and t-0 of job j holds it" in text
    assert text.count("overbooked") == 1


def test_a_card_of_two_tasks_of_a_job_is_found() -> None:
    assert "card x of node a is overbooked" in found([*START, *runs("j", ["x"], ["x"], nodes="aa"), *done(nodes="aa")])


def test_a_card_is_free_when_its_worker_is_gone() -> None:
    story = [*START, *runs("j", ["x"], ["x"]), *done(), *runs("k", ["x"], ["x"], number=2), *done(name="k")]
    assert found(story, requests(1, "j", "k")) == ""


@pytest.mark.parametrize(
    ("cards", "why"),
    [
        ((["z"], ["x"]), "t-0 of job j gets card z, which node a does not have"),
        ((["x", "y"], ["x"]), "t-0 of job j asks for 1 GPUs and gets the cards ['x', 'y']"),
        (([], ["x"]), "t-0 of job j asks for 1 GPUs and gets the cards []"),
    ],
)
def test_cards_that_are_not_what_was_asked_for(cards: tuple[list[str], list[str]], why: str) -> None:
    assert why in found([*START, *runs("j", *cards), *done()], requests(1, "j"))


def test_logs_from_before_cards_had_names_are_judged_by_numbers() -> None:
    former = [(kind, {key: each for key, each in data.items() if key != "cards"}) for kind, data in START]
    story = [*former, job("queued", None), *started(), *done()]
    assert found(story, requests(1, "j")) == ""
    assert "gpu of node a: 3 of 2 is overbooked" in found(story, requests(3, "j"))


def resized(cards: Sequence[Sequence[str]]) -> list[Fact]:
    """A job of two workers on a goes to three, with these cards."""
    _, data = plan(2, nodes="aa", rate=60)
    places = [
        {"id": f"j2{i}", "task": f"t-{i}", "node": "a", "address": f"10.9.{i}.2", "port": 1, "cards": list(ids)}
        for i, ids in enumerate(cards)
    ]
    committed = {"resize": "r", "job": "j", "attempt": 2, "before": 1, "size": len(cards)}
    return [("resize.committed", committed | {"allocations": places, "flows": data["flows"]})]


def test_both_sizes_of_a_job_may_hold_a_card_and_it_counts_once() -> None:
    request = JobRequest({"t-0": (10, 1, 1)}, elastic="t", sizes=(1, 2))
    inventory = Inventory(links=INVENTORY.links, jobs={"j": request})
    first = {"id": "j10", "task": "t-0", "node": "a", "address": "10.0.0.2", "port": 1, "cards": ["x"]}
    begun = ("plan.committed", {"plan": "p", "job": "j", "attempt": 1, "allocations": [first], "flows": []})
    steps = [job("planned", "queued"), allocation(0, "pending", None), job("preparing", "planned")]
    steps += [job("starting", "preparing"), allocation(0, "running", "pending"), job("running", "starting")]
    story = [*START, job("queued", None), begun, *steps]

    def told(*cards: Sequence[str]) -> str:
        return "\n".join(map(str, judge(numbered([*story, *resized(cards)]), inventory).findings))

    assert told(["x"], ["y"]) == ""
    assert told(["y"], ["x"]) == ""
    assert "card y of node a is overbooked" in told(["y"], ["y"])


def sharing(facts: list[Fact], share: int, memory: int) -> list[Fact]:
    """The same, where each task gets a part of its card."""
    changed = copy.deepcopy(facts)
    for kind, data in changed:
        for each in data["allocations"] if kind == "plan.committed" else ():
            each |= {"gpu_share": share, "gpu_memory": memory}
    return changed


def shares(share: int, *names: str) -> Inventory:
    told = {"t-0": share, "t-1": share}
    requests = {name: replace(asked((10, 1, 0), (10, 1, 0)), shares=told) for name in names}
    return Inventory(links=INVENTORY.links, jobs=requests)


@pytest.mark.parametrize(
    ("share", "memory", "why"),
    [
        (500, 8, ""),
        (600, 8, "card x of node a is overbooked: 1200 of 1000 thousandths"),
        (500, 9, "card x of node a is overbooked: 18 of 16 bytes"),
    ],
)
def test_shares_of_a_card_are_added_up(share: int, memory: int, why: str) -> None:
    both = [*runs("j", ["x"], ["y"]), *runs("k", ["x"], ["y"], number=2)]
    text = found([*START, *sharing(both, share, memory), *done(), *done(name="k")], shares(share, "j", "k"))
    assert why in text
    assert bool(why) is bool(text)


def test_a_card_that_is_held_whole_has_no_shares() -> None:
    story = [*START, *runs("j", ["x"], ["y"]), *sharing(runs("k", ["x"], ["x"], number=2), 10, 1)]
    assert "card x of node a is overbooked: t-0 of job k gets it, and t-0 of job j holds it" in found(story, INVENTORY)


def test_a_share_that_was_not_asked_for() -> None:
    story = [*START, *sharing(runs("j", ["x"], ["x"]), 500, 1), *done()]
    assert "t-0 of job j asks for 400 thousandths of a card and gets 500" in found(story, shares(400, "j"))
    assert "t-0 of job j asks for 0 thousandths of a card and gets 500" in found(story, requests(0, "j"))
