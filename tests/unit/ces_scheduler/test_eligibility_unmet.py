"""A task that no node's architecture or labels allow is told so, with every constraint at fault and what there is."""

from __future__ import annotations

from typing import Any

import pytest
from confinements import APART, TOGETHER

from ces_common.jobfile import Task
from ces_common.messages.confinement import Confinement
from ces_common.messages.records import NodeRecord
from ces_scheduler.eligibility import unmet_constraints


def node(name: str, arch: str = "x86_64", cpu: int = 1000, **labels: str) -> NodeRecord:
    return NodeRecord(name=name, cpu=cpu, memory=2**30, arch=arch, labels=labels)


def task(rank: int = 0, arch: str | None = None, **labels: str) -> Task:
    return Task(name=f"w-{rank}", rank=rank, cpu=100, memory=1, arch=arch, labels=labels)


NODES = [node("a", site="roof"), node("b", "aarch64", site="gate"), node("c", site="yard", disk="ssd")]
SWITCH = node("s", "riscv64", cpu=0, site="moon")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (task(site="moon"), "no node has label site=moon (gate, roof, yard exist)"),
        (task(camera="yes"), "no node has label camera=yes (no node says any)"),
        (task(disk="hdd"), "no node has label disk=hdd (ssd exists)"),
        (task(arch="riscv64"), "no node is riscv64 (aarch64, x86_64 exist)"),
        (
            task(arch="riscv64", site="moon", disk="hdd"),
            "no node is riscv64 (aarch64, x86_64 exist); no node has label site=moon (gate, roof, yard exist); "
            "no node has label disk=hdd (ssd exists)",
        ),
        (task(arch="aarch64", site="roof"), "no single node has arch aarch64 and label site=roof"),
    ],
)
def test_what_no_node_has_is_named(asked: Task, said: str) -> None:
    reason = unmet_constraints([asked], {each.name: each for each in [*NODES, SWITCH]})
    assert reason is not None
    assert reason.text == f"task w-0 is allowed on no node: {said}"
    assert (reason.code, reason.where, reason.forever) == ("no-allowed-node", "w-0", True)


def test_all_tasks_are_looked_at_and_the_first_is_named() -> None:
    tasks = [task(0, site="roof"), task(1, site="moon"), task(2, site="moon"), task(3, camera="yes")]
    reason = unmet_constraints(tasks, {each.name: each for each in NODES})
    assert reason is not None
    assert reason.text == (
        "task w-1 is allowed on no node: no node has label site=moon (gate, roof, yard exist); "
        "no node has label camera=yes (no node says any)"
    )


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (
            {},
            "it asks for secrets, and no node gives workers a user of their own: run agents as root, or with the",
        ),
        ({"a": APART}, "no single node has label site=gate and a user of its own for each worker, as secrets need"),
        ({"b": APART}, None),
    ],
)
def test_secrets_need_a_node_that_keeps_users_apart(where: dict[str, Confinement], said: str | None) -> None:
    nodes = {each.name: each.model_copy(update={"confinement": where.get(each.name, TOGETHER)}) for each in NODES}
    asked = task(site="gate").model_copy(update={"secrets": {"token": "hub"}})
    reason = unmet_constraints([task(), asked], nodes)
    assert (reason is None) is (said is None)
    if reason is not None and said is not None:
        assert reason.text.startswith(f"task w-0 is allowed on no node: {said}")


def test_many_values_are_cut_short() -> None:
    reason = unmet_constraints([task(site="x")], {f"n{i}": node(f"n{i}", site=f"s{i}") for i in range(8)})
    assert reason is not None
    assert reason.text.endswith("(s0, s1, s2, s3, s4 and 3 more exist)")


@pytest.mark.parametrize("change", [{}, {"cordoned": True}, {"state": "unreachable"}])
def test_a_node_that_is_only_away_may_come_back(change: dict[str, Any]) -> None:
    nodes = {"a": NODES[0].model_copy(update=change)}
    assert unmet_constraints([task(), task(1, arch="x86_64", site="roof")], nodes) is None


def test_without_nodes_nothing_is_said_of_labels() -> None:
    assert unmet_constraints([task(site="moon")], {"s": SWITCH}) is None
