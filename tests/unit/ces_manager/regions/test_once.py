"""Whatever is lost or late between a home and two other regions, and whoever forgets what it was at: a job runs in one
place at most, and in the end it is known what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from manager_world import World, full_mesh, ring, sqlite_url

from ces_common.db.region_tables import GuestRow
from ces_common.messages.events import PlanRefused, Reason
from ces_common.messages.regions import (
    HOLD_S,
    AwayJob,
    Decision,
    FateAnswer,
    GuestJobQuery,
    HoldQuery,
    RemoteJob,
    Reported,
)
from ces_common.queuefile import QueueFile
from ces_common.states import JOB_OVER, JobState
from ces_manager.plans.refusal import note_refusal
from ces_manager.regions import away, guests
from ces_manager.regions.held import end_holds

OWNERS = ("r1", "r2")
SOON, LATER = 1, int(HOLD_S) + 1  # seconds
# What happens: a step of the way, in one region, whose answer may be lost; or time, or a user who has had enough.
STEP = st.tuples(
    st.sampled_from(
        [*["hold", "decide", "follow", "refuse"] * 3, "network", "runs", "wait", "wait-long", "wait-long", "cancel"]
    ),
    st.sampled_from(OWNERS),
    st.booleans(),
)


class Play:
    """One job of ``home``. ``held``: the answers to holds that have arrived and were not acted on yet."""

    def __init__(self, home: World, owners: dict[str, World]) -> None:
        self.home, self.owners = home, owners
        for world in (home, *owners.values()):
            world.wipe()
            world.restart()
            world.add_nodes("a", "b")
            world.put_topology(full_mesh(["a", "b"]))
        self.job = home.submit(ring(tasks=2, regions=["any"]))
        self.held: list[Decision] = []

    def act(self, what: str, region: str, *, lost: bool) -> None:
        match what:
            case "hold":
                self.hold(region, lost=lost)
            case "decide":
                self.decide()
            case "follow":
                self.follow(lost=lost)
            case "network" | "runs":
                self.progress(region, what)
            case "wait" | "wait-long":
                self.wait(SOON if what == "wait" else LATER)
            case "refuse":
                self.refuse()
            case "cancel" if lost and region == "r1":  # rarely
                self.home.cancel(self.job)

    def refuse(self) -> None:
        record = self.home.job(self.job)
        reason = Reason(code="capacity", text="no room")
        refused = PlanRefused(job=self.job, attempt=record.attempt, version=0, reason=reason)
        self.home.write(lambda tx: note_refusal(tx, refused))

    def hold(self, region: str, *, lost: bool) -> None:
        """As the services do: only what is offered, and until it has its place."""
        with self.home.uow.read() as tx:
            offered = away.offered_jobs(tx)
        world = self.owners[region]
        for each in offered:
            asked = HoldQuery(home="home", job=each.job, attempt=each.attempt, file=each.file)
            answer = world.write(lambda tx, asked=asked: guests.hold(tx, asked, QueueFile()))
            if answer.fate == "waiting" and answer.remote is not None:
                world.commit(world.propose(answer.remote, ["a", "b"]))
                answer = world.write(lambda tx, asked=asked: guests.hold(tx, asked, QueueFile()))
            if answer.fate == "held" and answer.remote is not None and not lost:
                self.held.append(Decision(job=each.job, attempt=each.attempt, region=region, remote=answer.remote))

    def decide(self) -> None:
        """On what arrived first, however long ago that was."""
        if self.held:
            decision = self.held.pop(0)
            self.home.write(lambda tx: away.decide(tx, decision))

    def follow(self, *, lost: bool) -> None:
        with self.home.uow.read() as tx:
            jobs = away.open_jobs(tx)
        for job in jobs:
            answer = self.ask(job)
            if lost:  # and the home tells of silence
                answer = answer.model_copy(update={"fate": None, "status": None})
            with self.home.uow.read() as tx:
                news = away.has_news(tx, [answer])
            if news:
                self.home.write(lambda tx, news=news: away.take_reports(tx, news))

    def ask(self, job: AwayJob) -> Reported:
        world, about = self.owners[job.region], {"job": job.job, "attempt": job.attempt, "remote": job.remote}
        query, status = GuestJobQuery(home="home", **about), None
        if job.wanted == "status":
            with world.uow.read() as tx:
                [(said, status)] = guests.statuses(tx, "home", [RemoteJob(**about)])
        else:
            act = guests.commit if job.wanted == "commit" else guests.release
            said: FateAnswer = world.write(lambda tx: act(tx, query))
        return Reported(**about, region=job.region, fate=said.fate, status=status)

    def progress(self, region: str, what: str) -> None:
        world = self.owners[region]
        for job in self.jobs(region):
            record = world.job(job)
            if what == "network" and record.state in (JobState.PLANNED, JobState.PREPARING):
                world.network(job)
            elif what == "runs" and record.state in (JobState.STARTING, JobState.RUNNING):
                world.tell(job, "running" if record.state is JobState.STARTING else "exited", exit_code=0)

    def wait(self, seconds: int) -> None:
        for world in (self.home, *self.owners.values()):
            world.wait(seconds)
        for world in self.owners.values():
            world.write(end_holds)

    def jobs(self, region: str) -> list[str]:
        return [job.id for job in self.owners[region].snapshot().jobs]

    def started(self) -> list[tuple[str, str]]:
        """Jobs of all regions that were let start, as their events tell."""
        found = []
        for region, world in self.owners.items():
            with world.uow.read() as tx:
                committed = {guest.job for guest in tx.session.query(GuestRow).filter(GuestRow.committed)}
            found += [(region, job) for job in sorted(committed)]
        return found


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, World]]:
    made = {name: World(sqlite_url(folder(tmp_path_factory, name))) for name in ("home", *OWNERS)}
    yield made
    for world in made.values():
        world.close()


def folder(factory: pytest.TempPathFactory, name: str) -> Path:
    return factory.mktemp(name)


@settings(
    max_examples=40,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking takes minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=st.lists(STEP, min_size=20, max_size=60))
def test_a_job_runs_in_one_place_at_most_and_its_end_is_known(
    worlds: dict[str, World], steps: list[tuple[str, str, bool]]
) -> None:
    play = Play(worlds["home"], {name: worlds[name] for name in OWNERS})
    play.refuse()
    for what, region, lost in steps:
        play.act(what, region, lost=lost)
        assert len(play.started()) <= 1
    # The home's service starts anew, and from here on nothing is lost: the job ends. A decision that it still wrote
    # down may be about a place that was given up, which takes one more round.
    play.held.clear()
    for _ in range(3):
        if play.home.job(play.job).state is JobState.QUEUED:
            play.refuse()
            play.hold("r1", lost=False)
        play.decide()
        play.follow(lost=False)
        for what in ("network", "runs", "runs"):
            for region in OWNERS:
                play.progress(region, what)
        play.follow(lost=False)
        play.wait(LATER)
        assert len(play.started()) <= 1
    state = play.home.job(play.job).state
    assert state in (JobState.SUCCEEDED, JobState.CANCELLED)
    for region, world in play.owners.items():
        assert all(world.job(job).state in JOB_OVER for job in play.jobs(region))
    if state is JobState.SUCCEEDED:
        assert len(play.started()) == 1
