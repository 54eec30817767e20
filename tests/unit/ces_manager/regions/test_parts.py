from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

import pytest
from manager_world import World, full_mesh, ring

from ces_common.messages.events import PlanRefused, Reason
from ces_common.messages.membership import JoinRequest
from ces_common.messages.pieces import Part, Piece, Place
from ces_common.messages.plans import FlowPlan, PlanProposed
from ces_common.messages.records import SnapshotQuery
from ces_common.messages.regions import HOLD_S, Border
from ces_common.messages.split import BorderSetup, FarEnd, PartAnswer, PartCommitQuery, PartHoldQuery, PartQuery
from ces_common.names import border_node
from ces_common.queuefile import QueueFile
from ces_common.states import JobState
from ces_manager.errors import Conflict, Invalid, ManagerError
from ces_manager.jobs import lifecycle
from ces_manager.jobs.transitions import change, job_row
from ces_manager.network import borders
from ces_manager.nodes import membership
from ces_manager.plans.refusal import note_refusal
from ces_manager.regions import parts
from ces_manager.regions.held import end_holds

MBIT = 10**6
FILE = ring(tasks=3, regions=["any"])  # w-0 -> w-1 -> w-2 -> w-0
PIECE: dict[str, Any] = {
    "tasks": ["w-0", "w-1"],
    "crossings": [
        {"src": "w-1", "dst": "w-2", "rate": 20 * MBIT, "region": "r1"},
        {"src": "w-2", "dst": "w-0", "rate": 30 * MBIT, "region": "r1"},
    ],
}
FAR = FarEnd(subnet=IPv4Network("10.66.7.0/24"), network="tc", bandwidth=50 * MBIT)
SETUP = BorderSetup(region="r1", gateway="a", there="gw", bandwidth=40 * MBIT, far=FAR)
STANDS = border_node("r1", "gw")
BLOCK = IPv4Network("10.64.0.0/16")
PLACE = Place.model_validate({"task": "w-2", "region": "r1", "address": "10.66.9.2", "port": 29400})


@pytest.fixture
def joined(owner: World) -> World:
    owner.write(lambda tx: borders.put_borders(tx, [SETUP]))
    return owner


def hold(world: World, piece: dict[str, Any] = PIECE, queue: QueueFile = QueueFile()) -> PartAnswer:
    asked = PartHoldQuery(home="r1", job="job-1", attempt=1, part=0, file=FILE, piece=Piece.model_validate(piece))
    return world.write(lambda tx: parts.hold(tx, asked, queue))


def ref(answer: PartAnswer) -> PartQuery:
    return PartQuery(home="r1", job="job-1", attempt=1, part=0, remote=answer.remote or "")


def commit(world: World, answer: PartAnswer, *places: Place) -> PartAnswer:
    asked = PartCommitQuery(**ref(answer).model_dump(), places=list(places or (PLACE,)))
    return world.write(lambda tx: parts.commit(tx, asked, BLOCK))


def placed(world: World) -> PartAnswer:
    """A held part with its place: w-0 on b, w-1 on c."""
    asked = hold(world)
    assert asked.fate == "waiting"
    assert asked.remote is not None
    assert world.commit(plan(world, asked.remote)) is None
    return hold(world)


def plan(world: World, job: str) -> PlanProposed:
    paths = {
        ("w-0", "w-1"): (10 * MBIT, ["b", "c"]),
        ("w-1", "w-2"): (20 * MBIT, ["c", "a", STANDS]),
        ("w-2", "w-0"): (30 * MBIT, [STANDS, "a", "b"]),
    }
    flows = [FlowPlan(src=src, dst=dst, rate=rate, path=path) for (src, dst), (rate, path) in paths.items()]
    places = {"w-0": "b", "w-1": "c"}
    return PlanProposed(
        plan=f"plan-{job}", job=job, attempt=1, version=0, solver="test", assignments=places, flows=flows
    )


def part_of(world: World, answer: PartAnswer) -> Part:
    assert answer.remote is not None
    part = world.job(answer.remote).part
    assert part is not None
    return part


def state(world: World, answer: PartAnswer) -> JobState:
    assert answer.remote is not None
    return world.job(answer.remote).state


def test_a_part_has_its_own_tasks_and_flows_that_end_at_the_gateway(joined: World) -> None:
    record = joined.job(hold(joined).remote or "")
    assert [(task.name, task.rank) for task in record.tasks] == [("w-0", 0), ("w-1", 1)]
    assert {(f.src, f.dst): (f.min, f.max, f.border) for f in record.flows} == {
        ("w-0", "w-1"): (10 * MBIT, 50 * MBIT, None),
        ("w-1", "w-2"): (20 * MBIT, 20 * MBIT, STANDS),
        ("w-2", "w-0"): (30 * MBIT, 30 * MBIT, STANDS),
    }
    assert record.part is not None
    assert record.part.ranks == {"w-0": 0, "w-1": 1, "w-2": 2}


def test_nothing_is_laid_before_the_commit_and_nothing_starts_before_the_word(joined: World) -> None:
    held = placed(joined)
    assert (held.fate, held.ready) == ("held", False)
    assert sorted(place.task for place in held.places) == ["w-0", "w-1"]
    assert part_of(joined, held).places is None
    committed = commit(joined, held)
    assert (committed.fate, committed.ready) == ("committed", False)
    assert part_of(joined, held).places == [PLACE]
    assert commit(joined, held).fate == "committed"  # an answer was lost
    joined.network(held.remote or "")
    assert state(joined, held) is JobState.PREPARING
    with joined.uow.read() as tx:
        assert parts.status(tx, ref(held)).ready
    started = joined.write(lambda tx: parts.start(tx, ref(held)))
    assert started.started
    assert state(joined, held) is JobState.STARTING


def test_told_to_start_before_its_network_is_in_place_it_starts_then(joined: World) -> None:
    held = placed(joined)
    commit(joined, held)
    joined.write(lambda tx: parts.start(tx, ref(held)))
    assert state(joined, held) is JobState.PLANNED
    joined.network(held.remote or "")
    assert state(joined, held) is JobState.STARTING


def test_one_that_is_not_committed_does_not_start(joined: World) -> None:
    held = placed(joined)
    joined.network(held.remote or "")
    assert not joined.write(lambda tx: parts.start(tx, ref(held))).started
    assert state(joined, held) is JobState.PREPARING


def test_the_border_is_reserved_in_the_books_of_its_owner_and_never_twice(joined: World) -> None:
    def free() -> list[Border]:
        with joined.uow.read() as tx:
            return borders.borders(tx)

    assert free() == [Border(region="r1", total=38 * MBIT, free=38 * MBIT)]
    held = placed(joined)
    assert free() == [Border(region="r1", total=38 * MBIT, free=18 * MBIT)]
    second = PartHoldQuery(home="r1", job="job-2", attempt=1, part=0, file=FILE, piece=Piece.model_validate(PIECE))
    other = joined.write(lambda tx: parts.hold(tx, second, QueueFile()))
    refused = joined.commit(plan(joined, other.remote or ""))
    assert refused is not None
    assert f"link a › {STANDS} has 18 Mbit/s left" in refused
    joined.write(lambda tx: parts.release(tx, ref(held)))
    assert free()[0].free == 38 * MBIT


def test_a_hold_ends_by_itself_and_gives_its_place_back(joined: World) -> None:
    held = placed(joined)
    joined.now = joined.now.replace(second=int(HOLD_S) - 1)
    assert joined.write(end_holds) == 0
    joined.now = joined.now.replace(second=int(HOLD_S))
    assert joined.write(end_holds) == 1
    assert state(joined, held) is JobState.CANCELLED
    late = commit(joined, held)
    assert (late.fate, late.over) == ("released", True)
    assert hold(joined).fate == "waiting"  # the same part may be held once more, as another job


def test_a_committed_part_is_held_for_as_long_as_its_home_likes(joined: World) -> None:
    held = placed(joined)
    commit(joined, held)
    joined.now = joined.now.replace(minute=30)
    assert joined.write(end_holds) == 0
    assert state(joined, held) is JobState.PLANNED


def test_one_without_room_is_released_with_the_reason(joined: World) -> None:
    waits = hold(joined)
    refused = PlanRefused(job=waits.remote or "", attempt=1, version=0, reason=Reason(code="x", text="too little cpu"))
    joined.write(lambda tx: note_refusal(tx, refused))
    answer = hold(joined)
    assert (answer.fate, answer.reason, answer.over) == ("released", "too little cpu", True)


def test_a_part_that_loses_its_node_has_failed_and_is_not_placed_again(joined: World) -> None:
    held = placed(joined)
    commit(joined, held)

    def lose(course: lifecycle.Course) -> None:
        lifecycle.node_lost(course, "b", lifecycle.Cause.NODE_LOST, "node b is lost")

    joined.write(lambda tx: change(tx, job_row(tx, held.remote or ""), lose))
    assert state(joined, held) is JobState.FAILED


@pytest.mark.parametrize(
    ("piece", "why"),
    [
        ({**PIECE, "tasks": ["w-0", "w-7"]}, "no task w-7"),
        ({**PIECE, "tasks": ["w-0", "w-0"]}, "twice"),
        ({**PIECE, "crossings": PIECE["crossings"][:1]}, "says nothing of the flow w-2 -> w-0"),
        ({"tasks": ["w-0", "w-1", "w-2"], "crossings": PIECE["crossings"]}, "no flow that leaves"),
        ({**PIECE, "crossings": [{**c, "rate": MBIT} for c in PIECE["crossings"]]}, "1000000 bit/s"),
        ({**PIECE, "crossings": [{**c, "region": "r9"} for c in PIECE["crossings"]]}, "no border link"),
    ],
)
def test_what_is_no_part_of_the_job_is_refused(joined: World, piece: dict[str, Any], why: str) -> None:
    with pytest.raises(Invalid, match=why):
        hold(joined, piece)


def test_a_region_s_own_queue_decides_whether_it_takes_a_part(joined: World) -> None:
    queue = QueueFile.model_validate({"tenants": [{"name": "red"}]})
    with pytest.raises(ManagerError, match="no tenant is called 'default'"):
        hold(joined, queue=queue)


def test_a_home_names_no_address_of_this_region_and_every_peer(joined: World) -> None:
    held = placed(joined)
    inside = PLACE.model_copy(update={"address": BLOCK[77]})
    with pytest.raises(Invalid, match="at an address of this region"):
        commit(joined, held, inside)
    with pytest.raises(Invalid, match="each task of the other parts"):
        commit(joined, held, PLACE.model_copy(update={"task": "w-1"}))
    assert state(joined, held) is JobState.PLANNED
    with joined.uow.read() as tx:
        assert parts.status(tx, ref(held)).fate == "held"


def test_another_region_s_part_is_none_of_its_business(joined: World) -> None:
    held = placed(joined)
    stranger = ref(held).model_copy(update={"home": "r2"})
    assert joined.write(lambda tx: parts.release(tx, stranger)).fate == "unknown"
    assert state(joined, held) is JobState.PLANNED


def test_border_links_outlive_a_new_topology_and_are_no_part_of_it(joined: World) -> None:
    joined.put_topology(full_mesh(["a", "b", "c"], "80Mbit"))
    with joined.uow.read() as tx:
        assert {(link.src, link.dst): link.bandwidth for link in borders.border_links(tx)} == {
            ("a", STANDS): 40 * MBIT,
            (STANDS, "a"): 50 * MBIT,
        }
        assert not borders.differs(tx, [SETUP])
        assert borders.differs(tx, [SETUP.model_copy(update={"bandwidth": MBIT})])
        silent = SETUP.model_copy(update={"far": None})
    with pytest.raises(Invalid, match="stands for another region's gateway"):
        joined.put_topology(full_mesh(["a", STANDS]))
    joined.write(lambda tx: borders.put_borders(tx, [silent]))
    with joined.uow.read() as tx:
        assert len(borders.border_links(tx)) == 2, "a region that is silent keeps its links"
    before = joined.snapshot()
    joined.write(lambda tx: borders.put_borders(tx, []))
    with joined.uow.read() as tx:
        assert borders.border_links(tx) == []
    told = joined.snapshot(SnapshotQuery(since=before.version, epoch=before.epoch, removals=True))
    assert (told.full, told.removed_nodes) == (False, [STANDS])


@pytest.mark.parametrize(
    ("left", "why"),
    [
        ([SETUP.model_copy(update={"bandwidth": 15 * MBIT})], f"link a › {STANDS} has too little left"),
        ([SETUP.model_copy(update={"far": FAR.model_copy(update={"bandwidth": 20 * MBIT})})], f"link {STANDS} › a has"),
        ([], "is gone"),
    ],
)
def test_a_part_fails_whose_border_link_becomes_too_small_and_its_home_is_told(
    joined: World, left: list[BorderSetup], why: str
) -> None:
    held = placed(joined)
    commit(joined, held)
    own = joined.submit(ring(tasks=2))
    joined.run(own, ["b", "c"])
    joined.write(lambda tx: borders.put_borders(tx, left))
    assert state(joined, held) is JobState.FAILED
    with joined.uow.read() as tx:
        answer = parts.status(tx, ref(held))
    assert answer.status is not None
    assert answer.status.state is JobState.FAILED
    assert str(answer.status.reason).startswith("the border link no longer carries it: ")
    assert why in str(answer.status.reason)
    assert joined.job(own).state is JobState.RUNNING


def test_a_part_stays_on_a_border_link_that_still_carries_it(joined: World) -> None:
    held = placed(joined)
    commit(joined, held)
    smaller = SETUP.model_copy(update={"bandwidth": 25 * MBIT})
    joined.write(lambda tx: borders.put_borders(tx, [smaller]))
    assert state(joined, held) is JobState.PLANNED


def test_of_two_border_links_at_one_gateway_each_carries_its_own_region_s_parts(joined: World) -> None:
    far = FarEnd(subnet=IPv4Network("10.67.7.0/24"), network="tc", bandwidth=50 * MBIT)
    second = BorderSetup(region="r2", gateway="a", there="gw", bandwidth=40 * MBIT, far=far)
    joined.write(lambda tx: borders.put_borders(tx, [SETUP, second]))
    asked = hold(joined)
    planned = plan(joined, asked.remote or "")
    flows = [
        flow.model_copy(update={"path": [border_node("r2", "gw") if node == STANDS else node for node in flow.path]})
        for flow in planned.flows
    ]
    assert joined.commit(planned.model_copy(update={"flows": flows})) is not None
    assert joined.commit(planned) is None
    taken = second.model_copy(update={"far": far.model_copy(update={"subnet": FAR.subnet})})
    joined.write(lambda tx: borders.put_borders(tx, [SETUP, taken]))
    with joined.uow.read() as tx:
        assert borders.border_names(tx) == {STANDS}


def test_no_device_joins_as_what_stands_for_a_gateway(joined: World) -> None:
    request = JoinRequest.model_construct(name=STANDS, arch="amd64")
    with pytest.raises(Conflict, match="stands for the gateway of region r1"):
        joined.write(lambda tx: membership.join_node(tx, request))


def test_a_home_that_has_lost_what_it_knew_hears_of_committed_parts_and_frees_the_rest(joined: World) -> None:
    held = placed(joined)
    assert joined.write(lambda tx: parts.tries(tx, "r9", ["job-1"])) == []
    assert state(joined, held) is JobState.PLANNED, "another region's word"
    commit(joined, held)
    second = PartHoldQuery(home="r1", job="job-2", attempt=3, part=0, file=FILE, piece=Piece.model_validate(PIECE))
    other = joined.write(lambda tx: parts.hold(tx, second, QueueFile()))
    found = joined.write(lambda tx: parts.tries(tx, "r1", ["job-1", "job-2", "job-3"]))
    assert [(each.job, each.attempt, each.part, each.remote) for each in found] == [("job-1", 1, 0, held.remote)]
    assert state(joined, other) is JobState.CANCELLED
    assert state(joined, held) is JobState.PLANNED
