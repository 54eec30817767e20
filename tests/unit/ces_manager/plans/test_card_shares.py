"""Shares of cards: thousandths and memory are counted for each card by itself."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from manager_world import World, sqlite_url
from world_audit import audit, findings

from ces_common.jobfile import JobFile
from ces_common.messages.cards import Card
from ces_common.states import JobState
from ces_manager.jobs.job_views import job_view
from ces_manager.live.look import Looker
from ces_manager.measurements import Measurements
from ces_manager.nodes.node_views import node_view
from ces_manager.regions.totals import totals
from ces_manager.replay.keyframes import past_of
from ces_manager.replay.past import picture_of

GIB = 2**30
T4 = [Card(id=f"T4-{i}", model="Tesla T4", memory=16 * GIB, shareable="counted") for i in (0, 1)]
WHOLE_ONLY = Card(id="P100-0", model="Tesla P100-PCIE-16GB", memory=16 * GIB)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(sqlite_url(tmp_path))
    made.add_nodes("a", cpu=64000, memory=2**40, cards=[*T4, WHOLE_ONLY])
    yield made
    audit(made)
    assert findings(made) == []
    made.close()


def sharing(name: str, gpu: object, tasks: int = 1, **more: object) -> JobFile:
    resources = {"cpu": "100m", "memory": "1Mi", "gpu": gpu}
    group = {"name": "w", "command": ["true"], "replicas": tasks, "resources": resources}
    models = {"constraints": {"gpu_model": more.pop("models")}} if "models" in more else {}
    return JobFile.model_validate({"name": name, "tasks": [group | models], **more})


def why(world: World, file: JobFile, *cards: str) -> str | None:
    job = world.submit(file)
    plan = world.propose(job, ["a"])
    return world.commit(plan.model_copy(update={"cards": {f"w-{i}": [card] for i, card in enumerate(cards)}}))


def test_shares_of_one_card_up_to_all_of_it(world: World) -> None:
    assert why(world, sharing("a", "600m"), "T4-0") is None
    left = "has 400m and 6.4 GiB left, which is less than 500m and 8 GiB"
    assert why(world, sharing("b", "500m"), "T4-0") == f"card T4-0 of node a, which the plan gives to w-0, {left}"
    assert why(world, sharing("c", "400m"), "T4-0") is None
    assert why(world, sharing("d", 1), "T4-0") == "card T4-0 of node a, which the plan gives to w-0, is another job's"
    assert why(world, sharing("e", 1), "T4-1") is None
    assert (
        why(world, sharing("f", "10m"), "T4-1") == "card T4-1 of node a, which the plan gives to w-0, is another job's"
    )


def test_memory_counts_by_itself(world: World) -> None:
    assert why(world, sharing("a", {"share": "100m", "memory": "12Gi"}), "T4-0") is None
    assert "has 900m and 4 GiB left" in str(why(world, sharing("b", {"share": "100m", "memory": "6Gi"}), "T4-0"))
    assert why(world, sharing("c", {"share": "900m", "memory": "4Gi"}), "T4-0") is None


def test_tasks_of_one_plan_count_together(world: World) -> None:
    assert "has 400m and 6.4 GiB left" in str(why(world, sharing("a", "600m", tasks=2), "T4-0", "T4-0"))
    assert why(world, sharing("a", "600m", tasks=2), "T4-0", "T4-1") is None


def test_cards_of_other_models_and_such_as_are_not_shared(world: World) -> None:
    assert (
        why(world, sharing("a", "500m", models=["A100", "H100"]), "T4-0")
        == "card T4-0 of node a, which the plan gives to w-0, is Tesla T4, and not A100 or H100"
    )
    assert (
        why(world, sharing("b", "500m"), "P100-0")
        == "card P100-0 of node a, which the plan gives to w-0, is not shared"
    )
    assert why(world, sharing("c", 1, models=["T4"]), "P100-0") is not None
    assert why(world, sharing("d", 1, models=["p100"]), "P100-0") is None
    assert "asks for 500m of a card, the plan names 0 cards" in str(why(world, sharing("e", "500m")))


def test_a_suspended_job_keeps_its_share(world: World) -> None:
    job = world.submit(sharing("low", "600m", priority=10, preemption="suspend"))
    world.run(job, ["a"])
    urgent = world.submit(sharing("urgent", "600m", priority=90))
    assert world.preempt(urgent, job) is None
    assert "has 400m" in str(why(world, sharing("x", "600m"), "T4-0"))
    assert world.commit(world.go_on(job)) is None
    assert world.job(job).state is JobState.RUNNING


def test_a_thousand_jobs_with_shares_under_random_ends(world: World) -> None:
    """Whatever is proposed, and whoever is killed: at no instant is more of a card held than there is."""
    dice = random.Random(7)
    running: list[str] = []
    committed = refused = 0
    for number in range(1000):
        gpu = dice.choice(
            [1, f"{10 * dice.randint(1, 100)}m", {"share": f"{10 * dice.randint(1, 60)}m", "memory": "3Gi"}]
        )
        job = world.submit(sharing(f"j{number}", gpu, priority=dice.choice([10, 50]), preemption="suspend"))
        plan = world.propose(job, ["a"])
        if dice.random() < 0.3:  # a scheduler that is wrong, or late
            plan = plan.model_copy(update={"cards": {"w-0": [dice.choice([*T4, WHOLE_ONLY]).id]}})
        if world.commit(plan) is None:
            committed += 1
            world.network(job)
            world.tell(job, "running")
            running.append(job)
        else:
            refused += 1
            world.cancel(job)
        audit(world) if number % 10 == 0 else None
        while running and (len(running) > 6 or dice.random() < 0.3):
            victim = running.pop(dice.randrange(len(running)))
            if dice.random() < 0.5:
                world.cancel(victim)
                if dice.random() < 0.5:
                    audit(world)
                world.confirm(victim)
            else:
                world.tell(victim, "exited", exit_code=dice.choice([0, 0, 137]))
                world.cancel(victim)
                world.confirm(victim)
    assert committed > 300
    assert refused > 100


def test_what_is_told_of_a_node_counts_shares_as_parts_of_cards(world: World) -> None:
    """By views, by the live picture that metrics are made of, and by what is kept of the past."""
    measurements = Measurements()

    def told(name: str = "a") -> tuple[object, object, object, int]:
        with world.uow.read() as tx:
            view = node_view(tx, name, measurements)
            picture = Looker(measurements).look_at_cluster(tx, world.now, links=False)
            past = picture_of(past_of(tx, world.now))
            free = totals(tx, [], world.now).free.gpu
        return view.gpu_allocated, picture.nodes[name]["gpu_allocated"], past.nodes[name]["gpu_allocated"], free

    assert told() == (0, 0, 0, 3)
    assert why(world, sharing("a", "600m"), "T4-0") is None
    assert told() == (0.6, 0.6, 0.6, 2), "of three cards two are whole"
    assert why(world, sharing("b", 1), "T4-1") is None
    assert told() == (1.6, 1.6, 1.6, 1)


def test_what_keeps_a_program_to_its_share_is_what_its_node_has(world: World) -> None:
    kept = T4[1].model_copy(update={"shareable": "mps"})
    world.add_nodes("b", cpu=64000, memory=2**40, cards=[T4[0], kept])
    for name, cards in (("counts", ("T4-0",)), ("keeps", ("T4-1",)), ("whole", ("T4-1",))):
        job = world.submit(sharing(name, 1 if name == "whole" else "500m"))
        plan = world.propose(job, ["a" if name == "whole" else "b"])
        assert world.commit(plan.model_copy(update={"cards": {"w-0": list(cards)}})) is None
        with world.uow.read() as tx:
            (task,) = job_view(tx, job, Measurements()).placement
        expected = {"counts": "counted", "keeps": "co-operative", "whole": None}[name]
        assert task.gpu_sharing == expected
