"""The network of a task that is to move: laid at its destination beside all that its job has, and announced."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from bus_manager import FakeManager
from cluster_state import MBIT, job, node, view_of, wire
from memory_bus import MemoryBus

from ces_common import subjects
from ces_common.messages.desired import DesiredNetwork
from ces_common.messages.records import AllocationRecord, FlowRecord, JobRecord, Moving
from ces_common.messages.reports import Applied
from ces_common.task_move import MoveState
from ces_network_ctl.announcements import PREPARING_S
from ces_network_ctl.desired_network import Planner
from ces_network_ctl.service import NetworkController

NODES = [node("a", 1), node("s", 2, cpu=0, memory=0), node("b", 3), node("c", 4)]
LINKS = [*wire("a", "s"), *wire("s", "b"), *wire("s", "c")]
ONE, TWO, THERE = "10.77.1.2", "10.77.3.2", "10.77.4.2"
KEY = "j.1.m"


def moving(state: MoveState = MoveState.RESERVED) -> JobRecord:
    """w-0 sends from a to w-1 on b, and is to run on c."""
    new = AllocationRecord(id="new", task="w-0", rank=0, node="c", address=THERE, port=29500)
    flow = FlowRecord(number=9, src="w-0", dst="w-1", min=1, max=MBIT, rate=MBIT, path=["c", "s", "b"])
    return job(
        "j",
        ["a", "b"],
        [(0, 1, MBIT, ["a", "s", "b"])],
        addresses=[ONE, TWO],
        moving=Moving(move="m", state=state, task="w-0", beside=new, reserved=[flow]),
    )


def documents(record: JobRecord) -> Mapping[str, DesiredNetwork]:
    return Planner().plan(view_of(NODES, LINKS, [record]))


@pytest.mark.parametrize("state", [MoveState.RESERVED, MoveState.STOPPING])
def test_the_destination_has_its_network_before_the_task_is_there(state: MoveState) -> None:
    before, now = documents(moving().model_copy(update={"moving": None})), documents(moving(state))
    for name in ("a", "s", "b"):
        assert [each for each in now[name].endpoints if each.job == "j.1"] == before[name].endpoints
        assert [each for each in now[name].classes if each.job == "j.1"] == before[name].classes
        assert [each for each in now[name].policies if each.job == "j.1"] == before[name].policies
    (end,) = now["c"].endpoints
    assert (end.allocation, end.job, end.address, end.hostname) == ("new", KEY, THERE, "w-0")
    assert end.hosts == {"w-0": THERE, "w-1": TWO}
    assert [peer.address for peer in end.peers] == [TWO]
    assert {(each.number, each.src, each.dst) for each in now["c"].classes} == {(9, THERE, TWO)}
    assert {(each.src, each.dst) for each in now["s"].policies if each.job == KEY} == {(THERE, TWO), (TWO, THERE)}
    assert all(KEY in now[name].jobs for name in ("c", "s", "b"))
    assert KEY not in now["a"].jobs


def test_once_it_is_there_nothing_is_laid_beside() -> None:
    assert not any(KEY in each.jobs for each in documents(moving(MoveState.STARTING)).values())


def test_a_plan_that_goes_on_from_another_one_lays_the_same() -> None:
    planner = Planner()
    for state in (None, MoveState.RESERVED, MoveState.STOPPING, None):
        record = moving() if state is None else moving(state)
        record = record.model_copy(update={"moving": None}) if state is None else record
        assert planner.plan(view_of(NODES, LINKS, [record])) == documents(record)


async def test_it_is_announced_when_all_nodes_on_the_way_have_it(bus: MemoryBus, manager: FakeManager) -> None:
    manager.change(nodes=NODES, links=LINKS, jobs=[moving()])
    controller = NetworkController(bus, 30.0)
    await controller.announcements.listen()
    assert await controller.step() == PREPARING_S
    for name in ("a", "b", "s", "c"):
        assert manager.told("network.ready") == []
        keys = ["j.1"] if name == "a" else ["j.1", KEY]
        await bus.publish(subjects.report(name, "applied"), Applied(node=name, generation=1, jobs=keys).encode())
        await manager.settled()
        await controller.step()
    assert [(each.job, each.move) for each in manager.told("network.ready")] == [("j", "m")]
    await controller.step()
    assert len(manager.told("network.ready")) == 1
