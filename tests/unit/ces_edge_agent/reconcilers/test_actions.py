"""The reconciler: example by example, and against every history of documents, ends, leases and networks."""

import pytest
from agent_parts import network, worker
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ces_common.messages.desired import DesiredWorker
from ces_common.messages.reports import WorkerState, WorkerStatus
from ces_edge_agent.deadline import LEASE_OVER
from ces_edge_agent.reconcilers.actions import (
    ALIVE,
    Action,
    LeaseCover,
    Pause,
    Remove,
    Resume,
    Start,
    Stop,
    allocation_of,
    networked_allocations,
    plan_sandboxes,
    plan_workers,
)

HELD, OVER = LeaseCover(1.0), LeaseCover(-1.0)


def seen(*statuses: tuple[str, int, WorkerState]) -> dict[str, WorkerStatus]:
    return {
        f"{allocation}.{incarnation}": WorkerStatus(allocation=allocation, incarnation=incarnation, state=state)
        for allocation, incarnation, state in statuses
    }


def test_a_desired_worker_is_started_once_networked_and_leased() -> None:
    desired = [worker("a")]
    assert plan_workers(desired, {}, {"a"}, HELD) == {"a": Start(desired[0])}
    assert plan_workers(desired, {}, set(), HELD) == {}
    assert plan_workers(desired, {}, {"a"}, OVER) == {}
    assert plan_workers([worker("a", disconnect="keep")], {}, {"a"}, OVER) == {}


@pytest.mark.parametrize("state", ["starting", "running", "paused", "exited", "refused"])
def test_what_was_started_is_not_started_again(state: WorkerState) -> None:
    actions = plan_workers([worker("a")], seen(("a", 1, state)), {"a"}, HELD)
    assert not any(isinstance(action, Start) for action in actions.values())


def test_the_next_incarnation_waits_for_the_end_of_the_one_before() -> None:
    desired = [worker("a", 2)]
    assert plan_workers(desired, seen(("a", 1, "running")), {"a"}, HELD) == {"a": Stop("a.1", "no longer desired")}
    assert plan_workers(desired, seen(("a", 1, "exited")), {"a"}, HELD) == {"a": Remove("a.1")}
    assert plan_workers(desired, {}, {"a"}, HELD) == {"a": Start(desired[0])}


def test_stopping_comes_before_tidying() -> None:
    observed = seen(("a", 1, "exited"), ("a", 2, "running"), ("a", 3, "exited"))
    assert plan_workers([], observed, set(), HELD) == {"a": Stop("a.2", "no longer desired")}


def test_the_end_of_the_lease_stops_all_but_those_told_to_keep_going() -> None:
    desired = [worker("a"), worker("b", disconnect="keep"), worker("c")]
    observed = seen(("a", 1, "running"), ("b", 1, "running"), ("c", 1, "starting"))
    assert plan_workers(desired, observed, {"a", "b", "c"}, OVER) == {
        "a": Stop("a.1", "the lease has run out"),
        "c": Stop("c.1", "the lease has run out"),
    }


def test_a_stop_once_begun_is_carried_through_whatever_has_changed_since() -> None:
    told = {"a.1": LEASE_OVER, "b.1": LEASE_OVER}
    observed = seen(("a", 1, "running"), ("b", 1, "exited"))
    assert plan_workers([worker("a"), worker("b")], observed, {"a", "b"}, HELD, stop_reasons=told) == {
        "a": Stop("a.1", LEASE_OVER)
    }
    assert plan_workers([], seen(("a", 1, "exited")), set(), HELD, stop_reasons=told) == {"a": Remove("a.1")}


def test_pause_and_resume() -> None:
    assert plan_workers([worker("a", paused=True)], seen(("a", 1, "running")), {"a"}, HELD) == {"a": Pause("a.1")}
    assert plan_workers([worker("a")], seen(("a", 1, "paused")), {"a"}, HELD) == {"a": Resume("a.1")}
    assert plan_workers([worker("a", paused=True)], {}, {"a"}, HELD) == {}


def test_without_any_document_workers_go_on_while_the_lease_holds_and_no_longer() -> None:
    observed = seen(("a", 1, "running"), ("b", 1, "exited"))
    assert plan_workers([], observed, set(), HELD, known=False) == {}
    assert plan_workers([], observed, set(), OVER, known=False) == {"a": Stop("a.1", "the lease has run out")}


def test_sandboxes_that_are_missing_and_that_are_to_go() -> None:
    desired = network("a", "b")
    missing, stale = plan_sandboxes(desired, {"b", "c", "d"}, {"d"})
    assert [endpoint.allocation for endpoint in missing] == ["a"]
    assert stale == ["c"]
    assert plan_sandboxes(None, {"b"}, set()) == ([], [])


def test_only_allocations_of_attempts_in_place_are_networked() -> None:
    assert networked_allocations(network("a", job="j.1"), ["j.1"]) == {"a"}
    assert networked_allocations(network("a", job="j.2"), ["j.1"]) == set()
    assert networked_allocations(None, ["j.1"]) == set()


ALLOCATIONS = ["a", "b"]


class Node(RuleBasedStateMachine):
    """A node whose actions take their time and whose documents, lease and network change at any moment.

    As in the reconciler, one action per allocation is under way, decided on what was seen when it began.
    """

    def __init__(self) -> None:
        super().__init__()
        self.desired: dict[str, DesiredWorker] = {}
        self.known = False
        self.lease = False
        self.networked: set[str] = set()
        self.workers: dict[str, WorkerState] = {}
        self.under_way: dict[str, Action] = {}
        self.starts: list[str] = []
        self.highest = dict.fromkeys(ALLOCATIONS, 0)
        self.retired: set[str] = set()

    # the world

    @rule(allocation=st.sampled_from(ALLOCATIONS), keep=st.booleans(), paused=st.booleans())
    def want_a_new_incarnation(self, allocation: str, keep: bool, paused: bool) -> None:
        self.known = True
        self.retired.add(f"{allocation}.{self.highest[allocation]}")
        self.highest[allocation] += 1
        disconnect = "keep" if keep else "stop"
        self.desired[allocation] = worker(allocation, self.highest[allocation], disconnect=disconnect, paused=paused)

    @rule(allocation=st.sampled_from(ALLOCATIONS), paused=st.booleans())
    def pause(self, allocation: str, paused: bool) -> None:
        if allocation in self.desired:
            self.desired[allocation] = self.desired[allocation].model_copy(update={"paused": paused})

    @rule(allocation=st.sampled_from(ALLOCATIONS))
    def want_no_more(self, allocation: str) -> None:
        gone = self.desired.pop(allocation, None)
        if gone is not None:
            self.retired.add(gone.key)

    @rule(holds=st.booleans())
    def lease_changes(self, holds: bool) -> None:
        self.lease = holds

    @rule(allocation=st.sampled_from(ALLOCATIONS), there=st.booleans())
    def network_changes(self, allocation: str, there: bool) -> None:
        (self.networked.add if there else self.networked.discard)(allocation)

    @rule(data=st.data())
    def a_worker_ends(self, data: st.DataObject) -> None:
        alive = [key for key, state in self.workers.items() if state in ALIVE]
        if alive:
            self.workers[data.draw(st.sampled_from(sorted(alive)))] = "exited"

    # the agent

    def plan(self) -> dict[str, Action]:
        statuses = seen(
            *((allocation_of(key), int(key.rpartition(".")[2]), state) for key, state in self.workers.items())
        )
        return plan_workers(
            list(self.desired.values()),
            statuses,
            self.networked,
            LeaseCover(1.0 if self.lease else -1.0),
            known=self.known,
        )

    @rule()
    def look(self) -> None:
        for allocation, action in self.plan().items():
            if allocation in self.under_way:
                continue
            if isinstance(action, Start):
                assert self.lease
                assert allocation in self.networked
                assert action.worker.key not in self.starts, "each incarnation is started at most once"
                assert action.worker.key not in self.retired
                self.starts.append(action.worker.key)
            if isinstance(action, Remove):
                assert self.workers[action.key] not in ALIVE
            self.under_way[allocation] = action

    @rule(data=st.data())
    def an_action_is_done(self, data: st.DataObject) -> None:
        if self.under_way:
            self.done(data.draw(st.sampled_from(sorted(self.under_way))))

    def done(self, allocation: str) -> None:
        match self.under_way.pop(allocation):
            case Start(started):
                self.workers[started.key] = "running"
            case Stop(key, _):
                self.workers[key] = "exited"
            case Remove(key):
                del self.workers[key]
            case Pause(key):
                if self.workers[key] == "running":
                    self.workers[key] = "paused"
            case Resume(key):
                if self.workers[key] == "paused":
                    self.workers[key] = "running"

    @invariant()
    def never_two_of_one_allocation(self) -> None:
        for allocation in ALLOCATIONS:
            alive = [key for key, state in self.workers.items() if state in ALIVE and allocation_of(key) == allocation]
            starting = isinstance(self.under_way.get(allocation), Start)
            assert len(alive) + starting <= 1

    @rule(lease=st.booleans())
    def left_in_peace_it_becomes_as_desired(self, lease: bool) -> None:
        self.lease = lease
        for _ in range(6):
            self.look()
            for allocation in list(self.under_way):
                self.done(allocation)
        assert self.plan() == {}
        if not self.known:
            return
        desired = {each.key: each for each in self.desired.values()}
        assert set(self.workers) <= set(desired), "what is not desired is stopped, then removed"
        for key, each in desired.items():
            state = self.workers.get(key)
            if state is None:
                assert each.paused or not lease or each.allocation not in self.networked
            elif state in ALIVE:
                assert lease or each.disconnect == "keep"
                assert state == ("paused" if each.paused else "running")


Node.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestAnyHistory = Node.TestCase


def test_leases_cover_by_what_a_worker_was_told() -> None:
    assert HELD.covers(worker("a"))
    assert not OVER.covers(worker("a"))
    assert OVER.covers(worker("a", disconnect="keep"))
    assert LeaseCover(-299.0).covers(worker("a", disconnect="5m"))
    assert not LeaseCover(-300.0).covers(worker("a", disconnect="5m"))


def test_a_worker_that_outlives_the_lease_goes_on_and_none_starts_meanwhile() -> None:
    alive = seen(("a", 1, "running"))
    desired = [worker("a", disconnect="5m"), worker("b", disconnect="5m")]
    assert plan_workers(desired, alive, {"a", "b"}, LeaseCover(-1.0)) == {}
    assert plan_workers(desired, alive, {"a", "b"}, LeaseCover(-301.0)) == {"a": Stop("a.1", LEASE_OVER)}
