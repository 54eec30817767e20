"""More held than there is: overbooked nodes, links and media."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from audit_logs import INVENTORY, START, WHOLE, Fact, asked, done, findings, found, job, ready, started
from hypothesis import given
from hypothesis import strategies as st

from ces_client.audit import Amounts, Finding, Inventory, JobRequest


def kinds(facts: list[Fact], inventory: Inventory = INVENTORY) -> set[str]:
    return {finding.kind for finding in findings(facts, inventory)}


def test_what_is_overbooked_is_found() -> None:
    small = replace(INVENTORY, links={("a", "b"): 52})
    assert "link a -> b: 50 of 52 is overbooked" in found(WHOLE, small)
    shared = replace(INVENTORY, media={"air": 52}, medium_of={("a", "b"): "air"})
    assert "medium air: 50 of 52 is overbooked" in found(WHOLE, shared)
    wide = replace(shared, media={"air": 55})
    assert found(WHOLE, wide) == ""
    assert "medium air: 50 of 55 is overbooked" in found(WHOLE, replace(wide, tunnelled={"air"}))
    narrow = replace(wide, media={"air": 59})
    assert "medium air: 50 of 59 is overbooked" in found(WHOLE, replace(narrow, encrypted={"air"}))
    assert "medium air: 50 of 59 is overbooked" not in found(WHOLE, replace(narrow, tunnelled={"air"}))
    big = replace(INVENTORY, jobs={"j": asked((1001, 10, 0), (600, 10, 0))})
    assert "cpu of node a: 1001 of 1000 is overbooked" in found(WHOLE, big)
    assert (kinds(WHOLE, small), kinds(WHOLE, big)) == ({"link-capacity"}, {"node-capacity"})


def test_what_is_freed_in_between_can_be_given_away_again() -> None:
    inventory = replace(INVENTORY, jobs={name: asked((600, 10, 0), (600, 10, 0)) for name in "jk"})
    second = [job("queued", None, name="k"), *started(name="k", number=2)]
    assert found([*WHOLE, *second, *done(name="k")], inventory) == ""
    both = [*START, *started(), *second]
    assert {"cpu of node a: 1200 of 1000 is overbooked", "link a -> b: 100 of 100 is overbooked"} <= {
        finding.text for finding in findings(both, inventory)
    }


# Any log with nothing wrong, and what must be found once more is given away in it than there is.

PLACES = "abc"


HOPS = [(a, b) for a in PLACES for b in PLACES if a != b]


@st.composite
def _clean_logs(draw: st.DrawFn) -> tuple[list[Fact], Inventory, list[tuple[int, str, int, int]]]:
    """Facts, inventory, and for each start: where its plan stands, the job, and what others held then of its first
    node's CPU and of its link."""
    facts, jobs = ready(*PLACES), {}
    cpu, links = dict.fromkeys(PLACES, 0), dict.fromkeys(HOPS, 0)
    runs: dict[str, tuple[str, int, int]] = {}  # job -> nodes, CPU of each task, bandwidth
    starts = []
    for i in range(draw(st.integers(1, 8))):
        for name in draw(st.lists(st.sampled_from(sorted(runs)), unique=True)) if runs else []:
            nodes, amount, rate = runs.pop(name)
            facts += done(name=name, nodes=nodes)
            cpu[nodes[0]] -= amount
            cpu[nodes[1]] -= amount
            links[nodes[0], nodes[1]] -= rate
        name, nodes = f"job{i}", "".join(draw(st.sampled_from(HOPS)))
        amount, rate = draw(st.integers(1, 500)), draw(st.integers(1, 60))
        jobs[name] = asked((amount, 1, 0), (amount, 1, 0))
        facts.append(job("queued", None, name=name))
        others = cpu[nodes[0]], links[nodes[0], nodes[1]]
        if max(cpu[nodes[0]], cpu[nodes[1]]) + amount > 1000 or others[1] + rate > 95:
            facts.append(job("cancelled", "queued", name=name))
            continue
        starts.append((len(facts), name, *others))
        facts += started(name=name, nodes=nodes, rate=rate, number=i + 1)
        runs[name] = nodes, amount, rate
        cpu[nodes[0]] += amount
        cpu[nodes[1]] += amount
        links[nodes[0], nodes[1]] += rate
    for name, (nodes, _, _) in runs.items():
        facts += done(name=name, nodes=nodes)
    return facts, Inventory(links=dict.fromkeys(HOPS, 100), jobs=jobs), starts


@given(_clean_logs(), st.data())
def test_whatever_is_given_away_beyond_what_there_is_is_found(log: Any, data: st.DataObject) -> None:
    facts, inventory, starts = log
    assert found(facts, inventory) == ""
    at, name, others_cpu, others_link = data.draw(st.sampled_from(starts))  # the first job always starts
    if data.draw(st.booleans(), label="a link, not a node"):
        facts = copy.deepcopy(facts)
        flow = facts[at][1]["flows"][0]
        flow["rate"] = flow["max"] = 96 - others_link
        src, dst = flow["path"]
        what, node, link = f"link {src} -> {dst}: 96 of 100 is overbooked", None, f"{src}>{dst}"
    else:
        amounts: Amounts = (1001 - others_cpu, 1, 0)
        tasks = {**inventory.jobs[name].tasks, "t-0": amounts}
        inventory = replace(inventory, jobs={**inventory.jobs, name: JobRequest(tasks)})
        node, link = facts[at][1]["allocations"][0]["node"], None
        what = f"cpu of node {node}: 1001 of 1000 is overbooked"
    kind = "node-capacity" if node else "link-capacity"
    assert Finding(at + 1, kind, what, name, node, link) in findings(facts, inventory)
