"""Plans that fit are committed, others rejected; a refusal is stored once."""

from __future__ import annotations

import pytest
from manager_world import World, full_mesh, ring

from ces_common.messages.events import PlanRefused, Reason
from ces_common.messages.plans import FlowPlan
from ces_manager.jobs import job_views
from ces_manager.measurements import Measurements
from ces_manager.nodes import node_views, operations
from ces_manager.plans import refusal

NODES = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ({"assignments": {"w-0": "a", "w-1": "b"}}, "exactly the job's tasks"),
        ({"assignments": {"w-0": "a", "w-1": "b", "w-2": "x"}}, "node x does not exist"),
        ({"flows": []}, "exactly the job's flows"),
        ({"attempt": 2}, "attempt 1"),
        ({"job": "nobody"}, "no job"),
        ({"assignments": {"w-0": "a", "w-1": "a", "w-2": "a"}}, "does not lead from"),
    ],
)
def test_a_plan_that_does_not_fit_is_rejected_and_changes_nothing(
    world: World, harm: dict[str, object], said: str
) -> None:
    job = world.submit(ring())
    before = world.snapshot()
    reason = world.commit(world.propose(job, NODES).model_copy(update=harm))
    assert reason is not None
    assert said in reason
    assert world.snapshot() == before
    assert world.events()[-1][1] == "plan.rejected"


def test_capacity_is_checked_against_what_is_committed_now(world: World) -> None:
    jobs_ = [world.submit(ring(tasks=2, low="60Mbit", high="60Mbit")) for _ in range(2)]
    plans_ = [world.propose(job, ["a", "b"], 60_000_000) for job in jobs_]
    assert world.commit(plans_[0]) is None
    reason = world.commit(plans_[1])
    assert reason == "link a › b has 35 Mbit/s left, the plan asks for 60 Mbit/s"
    for _ in range(3):
        assert world.commit(world.propose(world.submit(ring(tasks=1)), ["a"])) is None
    reason = world.commit(world.propose(world.submit(ring(tasks=1)), ["a"]))
    assert reason == "node a has 0 cores left, the plan asks for 0.5 cores"
    world.write(lambda tx: operations.cordon(tx, "c"))
    assert world.commit(world.propose(world.submit(ring(tasks=1)), ["c"])) == "node c is cordoned"


@pytest.mark.parametrize(("kind", "left"), [("veth", "47.5"), ("vxlan", "45"), ("wireguard", "41.5")])
def test_links_of_one_medium_share_it(world: World, kind: str, left: str) -> None:
    file = full_mesh(NODES).model_dump(mode="json")
    for link in file["links"]:
        link |= {"medium": "air", "kind": kind}
    world.put_topology(
        type(full_mesh(NODES)).model_validate({**file, "media": [{"name": "air", "bandwidth": "50Mbit"}]})
    )
    job = world.submit(ring(tasks=2, low="30Mbit"))
    reason = world.commit(world.propose(job, ["a", "b"], 30_000_000))
    assert reason == f"medium air has {left} Mbit/s left, the plan asks for 60 Mbit/s"


def test_a_message_takes_effect_once(world: World) -> None:
    with world.uow.write(world.now) as tx:
        assert tx.first_time("m1")
    with world.uow.write(world.now) as tx:
        assert not tx.first_time("m1")


def test_why_a_job_waits_is_told_once(world: World) -> None:
    job = world.submit(ring())
    refused = PlanRefused(job=job, attempt=1, version=1, reason=Reason(code="cpu", text="too little"))
    for _ in range(2):
        world.write(lambda tx: refusal.note_refusal(tx, refused))
    assert [kind for _, kind in world.events()].count("job.waiting") == 1
    with world.uow.read() as tx:
        assert job_views.job_view(tx, job, Measurements()).waiting == refused.reason


def test_a_flow_may_go_over_several_links(world: World) -> None:
    job = world.submit(ring(tasks=2))
    plan = world.propose(job, ["a", "c"])
    detour = plan.model_copy(
        update={"flows": [FlowPlan(src="w-0", dst="w-1", rate=10**7, path=["a", "b", "c"]), plan.flows[1]]}
    )
    assert world.commit(detour) is None
    with world.uow.read() as tx:
        reserved = {(link.src, link.dst): link.reserved for link in node_views.topology_view(tx, Measurements()).links}
    assert {link for link, total in reserved.items() if total} == {("a", "b"), ("b", "c"), ("c", "a")}
