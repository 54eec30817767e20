"""What the manager keeps of the data that nodes offer, and which jobs it takes that read it, on both databases."""

from collections.abc import Iterator
from typing import Any

import pytest
from manager_world import World
from meshed_world import meshed_world
from sqlalchemy.engine import URL

from ces_common.jobfile import JobFile
from ces_common.messages.plans import FlowPlan, PlanProposed
from ces_common.messages.records import SnapshotQuery
from ces_common.messages.reports import DataReport
from ces_manager.errors import Invalid
from ces_manager.jobs import admission
from ces_manager.nodes import datasets

NODES = ["a", "b"]


@pytest.fixture
def world(url: URL) -> Iterator[World]:
    with meshed_world(url, *NODES) as made:
        yield made


def say(world: World, node: str, *names: str, port: int = 29401) -> bool:
    """An agent's report, as the service takes it: look first, then act. Whether it was news."""
    report = DataReport(node=node, port=port if names else 0, datasets=list(names))
    with world.uow.read() as tx:
        if not datasets.with_news(tx, [report]):
            return False
    world.write(lambda tx: datasets.take_reports(tx, [report]))
    return True


def reading(*names: str, node: str = "a") -> JobFile:
    source: dict[str, Any] = {"node": node, "dst": "w-0", "bandwidth": {"min": "1Mbit", "max": "9Mbit"}}
    return JobFile.model_validate(
        {
            "name": "reading",
            "tasks": [{"name": "w", "command": ["true"]}],
            "flows": {"inputs": [source | {"datasets": list(names)}]},
        }
    )


def test_what_a_node_offers_is_news_once(world: World) -> None:
    before = world.snapshot()
    assert say(world, "a", "words", "mnist")
    assert not say(world, "a", "mnist", "words"), "said again, in another order"
    (changed,) = world.snapshot(SnapshotQuery(since=before.version, epoch=before.epoch)).nodes
    assert (changed.name, changed.datasets, changed.data_port) == ("a", ["mnist", "words"], 29401)
    assert world.events()[-1][1] == "node.changed"
    assert say(world, "a")
    assert world.snapshot().nodes[0].datasets == []
    assert not say(world, "nobody", "mnist"), "of a node that has not joined"


@pytest.mark.parametrize(
    ("job", "field", "remedy"),
    [
        (reading("mnist", node="z"), "flows.inputs[0].node", "no node is named z; ces get nodes lists those"),
        (reading(node="b"), "flows.inputs[0].node", "node b offers no data: set CES_DATASETS on it"),
        (reading("mnist", "birds"), "flows.inputs[0].datasets[1]", "no dataset birds, only mnist, words; name one"),
    ],
)
def test_a_job_that_reads_what_nobody_offers_is_refused(world: World, job: JobFile, field: str, remedy: str) -> None:
    say(world, "a", "mnist", "words")
    with pytest.raises(Invalid) as refused:
        world.submit(job)
    assert refused.value.field == field
    assert remedy in refused.value.remedy
    with world.uow.read() as tx, pytest.raises(Invalid):
        admission.check_inputs(tx, job)


def test_a_plan_is_committed_where_the_data_still_is(world: World) -> None:
    say(world, "a", "mnist")
    job = world.submit(reading("mnist"))

    def plan(*path: str) -> PlanProposed:
        flows = [FlowPlan(src="@a", dst="w-0", rate=5_000_000, path=list(path))]
        return PlanProposed(
            plan=f"plan-{'-'.join(path)}-{world.snapshot().version}",
            job=job,
            attempt=1,
            version=0,
            solver="test",
            assignments={"w-0": "b"},
            flows=flows,
        )

    assert world.commit(plan("b")) == "the path of flow @a -> w-0 does not lead from a to b"
    say(world, "a", "words")
    assert world.commit(plan("a", "b")) == "node a offers no dataset mnist, which w-0 reads"
    say(world, "a")
    assert world.commit(plan("a", "b")) == "node a offers no dataset mnist, which w-0 reads"
    say(world, "a", "mnist")
    assert world.commit(plan("a", "b")) is None
    assert [(flow.src, flow.rate, flow.path) for flow in world.job(job).reserved] == [("@a", 5_000_000, ["a", "b"])]
