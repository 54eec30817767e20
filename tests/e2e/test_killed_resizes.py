"""Whatever dies or is cut off while jobs change their size: the change comes to its end or is given up, and no worker
lives twice or where another has the place."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from fault_cluster import FaultCluster, wait_for
from resized_jobs import PLACES, await_size, malleable, resizes, rigid, runs_at, takes_room

CENTRAL = ["manager", "scheduler", "compute-ctl", "network-ctl", "nats"]
RESIZES = int(os.environ.get("CES_RESIZES", "4"))
SEED = int(os.environ.get("CES_SEED", "0"))
CUT_S = 5.0  # well short of the lease: what runs stays


def growing(low: int) -> dict[str, Any]:
    """Speeds and work of a job for which every larger size pays at once, whatever its last resize took."""
    return {"total": 10**9, "hint": {low: float(low), PLACES: float(PLACES)}}


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "faults",
    [
        [
            "commit-ack:2",  # the resize, which the broker proposes again
            "commit-relay:3",  # all is held for the new size, no worker has been told to end
            "commit-relay:5",  # some have ended
            "relay-ack:4",
        ],
        pytest.param(
            ["commit-ack:3", "commit-ack:4", *(f"commit-relay:{n}" for n in (4, 6, 8)), "relay-ack:6", "relay-ack:8"],
            marks=pytest.mark.soak,
        ),
    ],
    ids=["some", "more"],
)
def test_manager_dies_in_a_resize(resizing: FaultCluster, open_folder: Path, faults: list[str]) -> None:
    job = resizing.submit(malleable("malleable", open_folder / "malleable", 2, PLACES, growing(2)))
    await_size(resizing, job, PLACES)
    for fault in faults:
        print(f"the manager dies at {fault}")
        starts = resizing.arm("manager", fault)
        other = takes_room(resizing, open_folder / "rigid", 5, job, PLACES - 5)
        (open_folder / "rigid").unlink()
        resizing.finish(other)
        await_size(resizing, job, PLACES)
        resizing.await_start_of("manager", starts + 1)
    (open_folder / "malleable").unlink()
    resizing.finish(job)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "service",
    [
        *("manager", "nats", "agents"),
        *(pytest.param(service, marks=pytest.mark.soak) for service in ("scheduler", "compute-ctl", "network-ctl")),
    ],
)
def test_a_resize_outlives(resizing: FaultCluster, open_folder: Path, service: str) -> None:
    job = resizing.submit(malleable("malleable", open_folder / "malleable", 2, PLACES, growing(2), grace="5s"))
    await_size(resizing, job, PLACES)
    before, ended = resizes(resizing), resizes(resizing, "ended")
    other = resizing.submit(rigid("rigid", open_folder / "rigid", 5))
    wait_for(lambda: resizes(resizing) > before, "room is made", pause_s=0.02)
    assert resizes(resizing, "ended") == ended, "it is still open"
    for name in [f"agent-{node}" for node in resizing.nodes] if service == "agents" else [service]:
        resizing.cluster.kill(name)
    resizing.await_state(other, "running")
    await_size(resizing, job, PLACES - 5)
    for name in ("rigid", "malleable"):
        (open_folder / name).unlink()
    resizing.finish(other)
    resizing.finish(job)


@pytest.mark.needs("root")
@pytest.mark.timeout(120 + 90 * RESIZES)
def test_random_resizes_while_things_die(resizing: FaultCluster, open_folder: Path) -> None:
    """A job gives way to others of random sizes and grows again, over and over."""
    print(f"drawn again by: CES_SEED={SEED} CES_RESIZES={RESIZES} pytest {__file__}")
    rng = random.Random(SEED)
    hold = open_folder / "malleable"
    job = resizing.submit(malleable("malleable", hold, 1, PLACES, growing(1)))
    await_size(resizing, job, PLACES)
    began = resizes(resizing, "ended")
    for number in range(RESIZES):
        taken, room = rng.randint(1, PLACES - 1), open_folder / f"rigid-{number}"
        other = resizing.submit(rigid(room.name, room, taken))
        befall(resizing, rng)
        resizing.await_state(other, "running")
        wait_for(lambda size=PLACES - taken: runs_at(resizing, job, size), f"it gives {taken} places")
        room.unlink()
        befall(resizing, rng)
        resizing.finish(other)
        wait_for(lambda: runs_at(resizing, job, PLACES), "it has all places again")
        if resizes(resizing, "ended") - began >= RESIZES:
            break
    assert resizes(resizing, "ended") - began >= RESIZES
    hold.unlink()
    resizing.finish(job)


def befall(cluster: FaultCluster, rng: random.Random) -> None:
    """Within a second something is killed, or a node is cut off for a while."""
    what, node = rng.choice([*CENTRAL, "agent", "agents", "cut"]), rng.choice(cluster.nodes)
    time.sleep(rng.uniform(0.0, 1.0))
    if what == "cut":
        cluster.cluster.hosts.partition(node)
        time.sleep(rng.uniform(0.0, CUT_S))
        cluster.cluster.hosts.heal(node)
    else:
        for name in {"agent": [f"agent-{node}"], "agents": [f"agent-{each}" for each in cluster.nodes]}.get(
            what, [what]
        ):
            cluster.cluster.kill(name)
