"""Submitting a job, and sending the same request again."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from manager_world import World, ring

from ces_common.db.tables import JobRow
from ces_common.jobfile import JobFile
from ces_common.queuefile import QueueFile
from ces_manager.errors import Conflict, Invalid, Overloaded
from ces_manager.jobs import submission


def test_the_same_key_gives_the_same_job(world: World) -> None:
    first = world.submit(ring(), "key")
    assert world.submit(ring(), "key") == first
    for other in (ring(tasks=2), ring(duration="5m")):
        with pytest.raises(Conflict):
            world.submit(other, "key")
    assert world.submit(ring(), "other") != first
    assert world.submit(ring(tenant="vision"), "key") != first, "each tenant has keys of its own"


def test_a_key_from_before_workers_outlived_the_lease_still_gives_its_job(world: World) -> None:
    first = world.submit(ring(disconnect="stop"), "key")  # as that manager understood a file without the field
    assert world.submit(ring(), "key") == first
    assert world.job(first).disconnect == "stop"
    with pytest.raises(Conflict):
        world.submit(ring(disconnect="5m"), "key")


def test_a_key_from_before_there_were_later_fields_still_gives_its_job(world: World) -> None:
    """What a manager without them hashed: a client may repeat its request across an upgrade."""
    first = world.submit(ring(), "key")
    document = json.loads(ring().model_dump_json())
    assert document["flows"].pop("inputs") == []
    assert [group.pop("secrets") for group in document["tasks"]] == [{}]
    assert [group.pop("work") for group in document["tasks"]] == [None]
    constraints = [group["constraints"] for group in document["tasks"]]
    assert [(each.pop("gpu_model"), each.pop("user")) for each in constraints] == [([], None)]
    assert [edge.pop("message") for edge in document["flows"]["edges"]] == ["0"] * len(document["flows"]["edges"])
    later = [document.pop(field) for field in ("tenant", "duration", "deadline", "preemption", "elastic", "regions")]
    assert later == ["default", None, None, "stop", None, []]
    of_applications = [document.pop(field) for field in ("kind", "users", "requests", "objective", "adjust")]
    assert of_applications == [None, [], [], None, None]
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    with world.uow.read() as tx:
        row = tx.session.get(JobRow, first)
        assert row is not None
        assert row.body_hash == sha256(text.encode()).hexdigest()


def test_so_many_jobs_of_a_tenant_wait_and_no_more(world: World) -> None:
    queue = QueueFile.model_validate({"waiting": 3, "tenants": [{"name": "default"}, {"name": "small", "waiting": 1}]})

    def submit(tenant: str, key: str | None = None) -> str:
        return world.write(lambda tx: submission.submit_job(tx, ring(tenant=tenant), key, queue).id)

    jobs = [submit("default", f"k{i}") for i in range(3)]
    with pytest.raises(Overloaded, match="3 jobs of tenant default wait, which is all that may"):
        submit("default")
    assert submit("default", "k1") == jobs[1], "what came before is answered again"
    submit("small")
    with pytest.raises(Overloaded, match="1 jobs of tenant small wait"):
        submit("small")
    world.cancel(jobs[0])
    submit("default")


def test_memory_without_a_unit_is_refused_with_the_unit(world: World) -> None:
    def job(memory: str) -> JobFile:
        task = {"name": "w", "command": ["x"], "resources": {"memory": memory}}
        return JobFile.model_validate({"name": "j", "tasks": [task]})

    with pytest.raises(Invalid) as refused:
        world.submit(job("64"))
    said = "tasks[0].resources.memory: 64 bytes are too few to run in: write a unit, like 64Mi"
    assert str(refused.value) == said
    assert world.job(world.submit(job("1048576"))).state == "queued"


def test_a_malleable_job_does_not_tell_torchrun_who_takes_part(world: World) -> None:
    def job(**more: object) -> JobFile:
        task = {"name": "w", "command": ["torchrun", "--nnodes=1:4", "train.py"]}
        return JobFile.model_validate({"name": "j", "tasks": [task], **more})

    with pytest.raises(Invalid) as refused:
        world.submit(job(elastic={"group": "w", "workers": {"max": 4}}))
    said = "tasks[0].command: leave out --nnodes: CES tells torchrun at each start who takes part"
    assert str(refused.value) == said
    assert world.job(world.submit(job())).state == "queued"
