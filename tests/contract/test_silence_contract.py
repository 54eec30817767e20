"""What a silence costs a job that says nothing of it: five minutes without the centre end no worker, and a node that is
cut off alone gives its work back in bounded time, after the node has ended it. The manager's expiry on both databases,
and the agents' leases, second by second on clocks that are told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_parts import FakeTime, worker
from databases import KINDS, new_database
from manager_world import World, full_mesh, ring

from ces_common.messages.reports import WorkerStatus
from ces_common.states import JobState
from ces_edge_agent.lease import Lease
from ces_edge_agent.reconcilers.actions import LeaseCover, Stop, plan_workers

NODES = ["a", "b", "c"]
FIVE_MINUTES = 300
BEAT_S = 2
BACK_S = 15  # until an agent that had lost the broker beats again


class Node:
    """A node with one worker of the job, as its agent has it."""

    def __init__(self, folder: Path, time: FakeTime, disconnect: str) -> None:
        folder.mkdir(parents=True)
        self._time, self._lease = time, Lease(folder, time.clocks())
        self._worker = worker("w", disconnect=disconnect)
        self._shown = WorkerStatus(allocation="w", incarnation=1, state="running")
        self.ended_at: float | None = None

    def granted(self, lease_s: float) -> None:
        self._lease.renew(self._time.steady, lease_s)

    def step(self) -> None:
        """As its agent's reconciler, and by the same rule what watches its workers without the agent."""
        cover = LeaseCover(self._lease.remaining())
        planned = plan_workers([self._worker], {self._worker.key: self._shown}, {"w"}, cover)
        if isinstance(planned.get("w"), Stop):
            self._shown = self._shown.model_copy(update={"state": "exited", "exit_code": 143, "lapsed": True})
            self.ended_at = self._time.steady


class Site:
    """A manager, three nodes, and a job by default that runs on all of them. ``deaf``: the manager hears nobody."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.time = world, FakeTime()
        self.deaf, self.cut = False, set[str]()
        world.add_nodes(*NODES)
        world.put_topology(full_mesh(NODES))
        self.job = world.submit(ring())
        world.run(self.job, NODES)
        disconnect = world.job(self.job).disconnect
        self.nodes = {name: Node(folder / name, self.time, disconnect) for name in NODES}
        self.pass_time(BEAT_S)

    def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            if self.deaf:
                self.time.passes(1)
            else:
                self.world.wait(1)
                self.time.passes(1)
                if self.time.steady % BEAT_S == 0:
                    self._beat()
                self.world.expire()
            for node in self.nodes.values():
                node.step()

    def _beat(self) -> None:
        heard = [name for name in NODES if name not in self.cut]
        self.world.beat(*heard)
        for name in heard:
            self.nodes[name].granted(self.world.timeouts.lease_s)

    @property
    def alive(self) -> list[str]:
        return [name for name, node in self.nodes.items() if node.ended_at is None]

    @property
    def state(self) -> JobState:
        return self.world.job(self.job).state


@pytest.fixture(params=KINDS)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    world = World(new_database(request.param, tmp_path))
    yield Site(world, tmp_path / "nodes")
    world.close()


@pytest.mark.parametrize("successor", [True, False], ids=["the manager fails over", "broker or database fail over"])
def test_five_minutes_without_the_centre_end_no_worker(site: Site, successor: bool) -> None:
    """A manager that is there knows that it hears nothing, and counts none of it; a new one begins with nothing."""
    site.deaf = True
    site.pass_time(FIVE_MINUTES + BACK_S)
    assert site.alive == NODES
    if successor:
        site.world.restart()
    site.deaf = False
    site.pass_time(60)
    assert site.alive == NODES
    record = site.world.job(site.job)
    assert (record.state, record.attempt, record.restarts) == (JobState.RUNNING, 1, 0)


def test_a_centre_that_does_not_come_back_is_not_waited_for_without_end(site: Site) -> None:
    site.deaf = True
    lease_s = round(site.world.timeouts.lease_s)
    site.pass_time(lease_s + FIVE_MINUTES - 1)
    assert site.alive == NODES
    site.pass_time(1)
    assert site.alive == []


def test_a_node_that_is_cut_off_alone_gives_its_work_back_after_it_has_ended_it(site: Site) -> None:
    began, timeouts = site.time.steady, site.world.timeouts
    site.cut.add("b")
    while site.state is JobState.RUNNING:
        site.pass_time(1)
        assert site.time.steady < began + 600
    ended_at = site.nodes["b"].ended_at
    assert ended_at is not None
    assert ended_at - began == timeouts.lease_s + FIVE_MINUTES
    gone_s = site.time.steady - began
    assert timeouts.lease_s + FIVE_MINUTES + timeouts.margin_s <= gone_s
    assert gone_s <= timeouts.lease_s + FIVE_MINUTES + timeouts.margin_s + BEAT_S
    record = site.world.job(site.job)
    assert record.reason == "node b was not heard for longer than its lease and 5m"
    site.world.confirm(site.job)
    assert site.state is JobState.QUEUED
    assert site.world.commit(site.world.propose(site.job, ["a", "c", "a"])) is None
    assert site.world.job(site.job).restarts == 0
