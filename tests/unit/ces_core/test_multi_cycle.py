"""CES-Multi, cycle by cycle: who starts, who is protected, and what the others are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ces_core.errors import ProblemError
from ces_core.ledger import Ledger
from ces_core.multi.cycle import Decisions, Memory, State, carried, cycle
from ces_core.multi.jobs import RunningJob, WaitingJob
from ces_core.multi.parameters import Parameters, Tenant
from ces_core.plan import Plan, Result
from ces_core.problem import Cluster, Flow, Link, Node, Problem, Task
from ces_core.solvers import get_solver

GREEDY = get_solver("greedy")
PLAIN = Parameters(bound_s=100, overdue=0.5)


def solve(job: WaitingJob, cluster: Cluster) -> Result:
    return GREEDY.solve(job.on(cluster))


def one_node(cpu: float = 10) -> Cluster:
    return Cluster.make([Node("n", cpu=cpu, memory=100)], [])


def wants(
    cluster: Cluster,
    name: str,
    cpu: float,
    *,
    submitted: float = 0,
    lasts: float | None = 10,
    priority: int = 50,
    tenant: str = "default",
    memory: float = 0,
) -> WaitingJob:
    problem = Problem.make(cluster, [Task("t", cpu=cpu, memory=memory)], name=name)
    return WaitingJob(name, problem, submitted, priority, tenant, lasts)


class Desk:
    """A cluster on which cycles run one after the other."""

    def __init__(self, cluster: Cluster, parameters: Parameters = PLAIN) -> None:
        self.ledger, self.parameters = Ledger(cluster), parameters
        self.cluster = cluster
        self.running: list[RunningJob] = []
        self.waiting: list[WaitingJob] = []
        self.memory, self.freed = Memory(), 0

    def run(self, job: WaitingJob, since: float = 0) -> None:
        """The job already runs."""
        plan = solve(job, self.ledger.cluster).plan
        assert plan is not None
        self._begin(job, plan, since)

    def end(self, name: str) -> None:
        self.ledger.release(name)
        self.running = [job for job in self.running if job.name != name]
        self.freed += 1

    def at(self, now: float, *jobs: WaitingJob) -> Decisions:
        self.waiting += jobs
        state = State(now, self.ledger, self.waiting, self.running, self.freed, self.memory)
        decided = cycle(state, self.parameters, solve)
        self.memory = decided.memory
        for start in decided.starts:
            job = next(job for job in self.waiting if job.name == start.job)
            self.waiting.remove(job)
            self._begin(job, start.plan, now)
        return decided

    def _begin(self, job: WaitingJob, plan: Plan, now: float) -> None:
        self.ledger.hold(job.name, job.problem, plan)
        self.running.append(RunningJob(job.name, now, job.tenant, job.expected_s))


def started(decided: Decisions) -> list[str]:
    return [start.job for start in decided.starts]


def queued(decided: Decisions) -> list[str]:
    return [standing.job for standing in decided.queue]


def test_what_takes_less_goes_first_and_the_parts_of_the_score_say_so() -> None:
    cluster = one_node()
    desk = Desk(cluster)
    decided = desk.at(
        0, wants(cluster, "long", 6, lasts=40), wants(cluster, "large", 8), wants(cluster, "small", 2, lasts=5)
    )
    assert started(decided) == ["small", "large"]
    first, second = decided.starts
    assert first.score.fit > second.score.fit
    assert first.score.scarce == "cpu"
    assert first.score.total == first.score.fit + first.score.priority + first.score.waiting + first.score.share
    assert queued(decided) == ["long"]


def test_the_scarce_resource_is_what_a_job_is_measured_by() -> None:
    cluster = one_node()
    desk = Desk(cluster)
    desk.run(wants(cluster, "hog", 1, memory=90))
    decided = desk.at(1, wants(cluster, "thirsty", 1, memory=8), wants(cluster, "busy", 6, memory=1))
    assert started(decided) == ["busy", "thirsty"]
    assert [start.score.scarce for start in decided.starts] == ["cpu", "memory"]


def test_priority_and_waiting_raise_a_job() -> None:
    cluster = one_node(5)
    jobs = [wants(cluster, "usual", 4, lasts=9), wants(cluster, "other", 4)]
    assert started(Desk(cluster).at(0, *jobs)) == ["usual"]
    urgent = [jobs[0], replace(jobs[1], priority=90)]
    assert started(Desk(cluster).at(0, *urgent)) == ["other"]
    late = [replace(jobs[0], submitted_s=40), jobs[1]]
    assert started(Desk(cluster).at(40, *late)) == ["other"]
    weightless = replace(PLAIN, priority=0, waiting=0)
    assert started(Desk(cluster, weightless).at(0, *urgent)) == ["usual"]


def test_a_large_job_starves_without_protection_and_not_with_it() -> None:
    def waited(parameters: Parameters) -> float:
        cluster = one_node(2)
        desk = Desk(cluster, parameters)
        desk.run(wants(cluster, "s0", 1, lasts=10))
        desk.waiting.append(wants(cluster, "large", 2, submitted=1))
        for second in range(5, 400, 5):  # every five seconds a small job comes, and lasts ten
            for job in list(desk.running):
                if job.started_s + (job.expected_s or 0) <= second:
                    desk.end(job.name)
            if "large" in started(desk.at(second, wants(cluster, f"s{second}", 1, submitted=second))):
                return second - 1
        return float("inf")

    assert waited(Parameters(bound_s=100, overdue=None)) == float("inf")
    assert waited(Parameters(bound_s=100, overdue=0.5, reservations=0)) == float("inf")
    assert waited(PLAIN) <= 100


def test_backfill_ends_in_time_or_stays_out_of_the_way() -> None:
    cluster = Cluster.make([Node("a", cpu=10), Node("b", cpu=4)], [])
    desk = Desk(cluster)
    desk.run(wants(cluster, "now", 6, lasts=100))
    decided = desk.at(60, wants(cluster, "big", 8, submitted=0, lasts=50))
    (promise,) = decided.memory.reservations
    assert (promise.start_s, promise.waits_for) == (100, ("now",))
    assert decided.queue[0].reserved
    assert decided.queue[0].start_s == 100
    assert decided.queue[0].held_by == ("now",)
    assert "held by now; room is kept for it" in decided.queue[0].text()
    decided = desk.at(
        61,
        wants(cluster, "too-long", 3, submitted=61, lasts=60),
        wants(cluster, "too-long-too", 3, submitted=61, lasts=61),
        wants(cluster, "unknown", 3.5, submitted=61, lasts=None),
    )
    # Only node b is left to those that outlast the reservation; one that says nothing may outlast anything.
    assert started(decided) == ["too-long"]
    decided = desk.at(62, wants(cluster, "in-time", 4, submitted=62, lasts=38))
    assert started(decided) == ["in-time"]
    assert decided.memory.reservations[0].start_s == 100
    desk.end("now")
    desk.end("in-time")
    assert started(desk.at(100))[0] == "big"


def test_without_stated_durations_room_is_kept_on_the_nodes_that_will_be_used() -> None:
    cluster = Cluster.make([Node("a", cpu=10), Node("b", cpu=4)], [])
    desk = Desk(cluster)
    desk.run(wants(cluster, "now", 6, lasts=None))
    decided = desk.at(60, wants(cluster, "big", 8, lasts=None))
    (promise,) = decided.memory.reservations
    assert (promise.start_s, promise.waits_for) == (None, ("now",))
    assert decided.queue[0].start_s is None
    decided = desk.at(61, wants(cluster, "x", 4, submitted=61, lasts=1), wants(cluster, "y", 3, submitted=61, lasts=1))
    assert len(started(decided)) == 1  # on b; a is kept
    desk.end("now")
    assert "big" in started(desk.at(62))


def test_who_ends_early_brings_the_promise_forward_and_who_overruns_puts_it_off() -> None:
    cluster = one_node()
    desk = Desk(cluster)
    desk.run(wants(cluster, "a", 5, lasts=100))
    desk.run(wants(cluster, "b", 5, lasts=200))
    assert desk.at(60, wants(cluster, "big", 10)).memory.reservations[0].start_s == 200
    desk.end("b")
    assert desk.at(70).memory.reservations[0].start_s == 100
    promise = desk.at(150).memory.reservations[0]  # a should have ended
    assert promise.waits_for == ("a",)
    assert promise.start_s == pytest.approx(150)
    desk.end("a")
    assert started(desk.at(160)) == ["big"]


def test_a_flood_of_one_tenant_holds_up_nobody_elses_first_job() -> None:
    cluster = one_node()
    desk = Desk(cluster, replace(PLAIN, bound_s=1e6))
    desk.at(0, *(wants(cluster, f"flood{i}", 5, tenant="flood", priority=100) for i in range(500)))
    desk.at(1, wants(cluster, "first", 5, submitted=1, lasts=500, tenant="small", priority=0))
    desk.end(desk.running[0].name)
    assert started(desk.at(10)) == ["first"]


def test_shares_follow_the_weights() -> None:
    cluster = one_node(12)
    tenants = (Tenant("one"), Tenant("two", weight=2))
    desk = Desk(cluster, Parameters(bound_s=1e6, share=10, window=None, tenants=tenants))
    jobs = [wants(cluster, f"{tenant}{i}", 1, tenant=tenant) for tenant in ("one", "two") for i in range(20)]
    desk.at(0, *jobs)
    count = [sum(job.tenant == tenant for job in desk.running) for tenant in ("one", "two")]
    assert count == [4, 8]


def test_what_is_guaranteed_does_not_count_against_a_tenant() -> None:
    cluster = one_node(12)
    tenants = (Tenant("sure", guaranteed={"cpu": 0.5}), Tenant("other"))
    desk = Desk(cluster, Parameters(bound_s=1e6, share=10, window=None, tenants=tenants))
    jobs = [wants(cluster, f"{tenant}{i}", 1, tenant=tenant) for tenant in ("sure", "other") for i in range(20)]
    desk.at(0, *jobs)
    assert sum(job.tenant == "sure" for job in desk.running) == 9  # half of it, and half of the rest


def test_a_quota_is_kept_and_named() -> None:
    cluster = one_node()
    desk = Desk(cluster, replace(PLAIN, tenants=(Tenant("t", quota={"cpu": 0.5}), Tenant("u"))))
    decided = desk.at(
        0, *(wants(cluster, f"j{i}", 3, tenant="t") for i in range(2)), wants(cluster, "k", 6, tenant="t")
    )
    assert len(started(decided)) == 1
    told = {standing.job: standing for standing in decided.queue}
    assert "the quota of tenant t leaves 2 cpu, the job needs 3 cpu" in {each.text() for each in decided.queue}
    assert told["k"].reason is not None
    assert told["k"].reason.permanent
    assert decided.refused["k"].code == "quota"
    assert started(desk.at(1, wants(cluster, "other", 7, tenant="u"))) == ["other"]


def test_a_quota_of_bandwidth_counts_every_link_of_the_way() -> None:
    cluster = Cluster.make([Node("a", cpu=1), Node("b", cpu=1)], [Link("a", "b", 10), Link("b", "a", 10)])
    problem = Problem.make(cluster, [Task("x", cpu=1), Task("y", cpu=1)], [Flow("x", "y", 6, 10)])
    desk = Desk(cluster, replace(PLAIN, tenants=(Tenant("t", quota={"bandwidth": 0.25}),)))
    decided = desk.at(0, WaitingJob("j", problem, 0, tenant="t"))
    assert started(decided) == []
    assert decided.refused["j"].resource == "bandwidth"


def test_the_window_bounds_the_refusals_and_rolls_on() -> None:
    asked: list[str] = []

    def counting(job: WaitingJob, cluster: Cluster) -> Result:
        asked.append(job.name)
        return solve(job, cluster)

    nodes = [Node("a", cpu=3), Node("b", cpu=3), Node("c", cpu=3)]
    cluster = Cluster.make(nodes, [Link("a", "b", 15, bandwidth_used=9), Link("b", "a", 15, bandwidth_used=9)])
    problem = Problem.make(cluster, [Task("x", cpu=2), Task("y", cpu=2)], [Flow("x", "y", 10, 10)])
    jobs = [WaitingJob(f"j{i}", problem, i, expected_s=9) for i in range(10)]
    parameters = replace(PLAIN, window=4)
    memory = Memory()
    ledger, other = Ledger(cluster), WaitingJob("other", Problem.make(cluster, [Task("0", cpu=3, allowed=("c",))]), 0)
    plan = solve(other, cluster).plan
    assert plan is not None
    ledger.hold(other.name, other.problem, plan)
    running = [RunningJob(other.name, 0, other.tenant, None)]  # whose end will bring a cycle
    for cycles in range(1, 4):
        decided = cycle(State(10, ledger, jobs, running, 0, memory), parameters, counting)
        memory = decided.memory
        assert len(asked) == min(4 * cycles, 10)
    assert len(set(asked)) == 10  # whom nothing can have helped is not tried again
    assert not [standing for standing in decided.queue if standing.reason is None]
    cycle(State(10, ledger, jobs, running, 1, memory), parameters, counting)
    assert len(asked) == 14


def test_a_cycle_says_that_it_did_not_come_to_everybody() -> None:
    cluster = one_node()
    jobs = [wants(cluster, f"j{i}", 4, submitted=i) for i in range(3)]
    desk = Desk(cluster, replace(PLAIN, starts=1))
    first, second = desk.at(3, *jobs), desk.at(3)
    assert [(started(decided), decided.more) for decided in (first, second)] == [(["j0"], True), (["j1"], False)]


def test_a_promised_time_holds_against_a_later_promise_of_no_time() -> None:
    cluster = Cluster.make([Node("a", cpu=4), Node("b", cpu=4)], [])

    def wanting(name: str, *nodes: str, lasts: float | None, submitted: float = 0) -> WaitingJob:
        tasks = [Task(node, cpu=4, allowed=(node,)) for node in nodes]
        return WaitingJob(name, Problem.make(cluster, tasks), submitted, expected_s=lasts)

    desk = Desk(cluster)
    desk.run(wanting("open", "a", lasts=None))
    desk.run(wanting("closed", "b", lasts=80))
    promised = desk.at(60, wanting("one", "b", lasts=100), wanting("both", "a", "b", lasts=None, submitted=1)).queue
    assert [(each.job, each.reserved, each.start_s) for each in promised] == [("one", True, 80), ("both", True, None)]
    desk.end("open")
    assert [(each.job, each.start_s) for each in desk.at(70).queue] == [("one", 80), ("both", 180)]


def test_a_promise_is_carried_to_another_cluster_where_its_plan_is_possible_there() -> None:
    def two(*, wired: bool = True, more: bool = False) -> Cluster:
        links = [Link("a", "b", 9), Link("b", "a", 9)] if wired else []
        return Cluster.make([*([Node("_", cpu=1)] if more else []), Node("a", cpu=4), Node("b", cpu=4)], links)

    def asking(cluster: Cluster, *allowed: str) -> WaitingJob:
        tasks = [Task("x", cpu=4, allowed=allowed or None), Task("y", cpu=4)]
        return WaitingJob("j", Problem.make(cluster, tasks, [Flow("x", "y", 1, 1)]), 0, expected_s=5)

    desk = Desk(two())
    desk.run(wants(desk.cluster, "open", 1, lasts=90))
    promise = desk.at(60, asking(desk.cluster)).queue[0]
    assert (promise.reserved, promise.start_s) == (True, 90)
    assert not carried(desk.memory, [asking(two(wired=False))], two(wired=False)).reservations
    assert not carried(desk.memory, [], two()).reservations
    first = str(desk.memory.reservations[0].plan.assignments["x"])
    assert not carried(desk.memory, [asking(two(), *{"a", "b"} - {first})], two()).reservations
    (before,), (after,) = (
        desk.memory.reservations,
        carried(desk.memory, [asking(two(more=True))], two(more=True)).reservations,
    )
    assert (after.begin, after.plan) == (before.begin, before.plan)
    assert {node for resource, node in after.cells if resource == 0} == {1, 2}


def test_what_will_never_fit_is_not_tried_again_when_something_becomes_free() -> None:
    cluster = Cluster.make([Node("a", cpu=3), Node("b", cpu=3)], [])  # no way between them
    problem = Problem.make(cluster, [Task("x", cpu=2), Task("y", cpu=2)], [Flow("x", "y", 1, 2)])
    asked: list[str] = []

    def counting(job: WaitingJob, cluster: Cluster) -> Result:
        asked.append(job.name)
        return solve(job, cluster)

    memory = Memory()
    for freed in range(3):
        decided = cycle(State(90, Ledger(cluster), [WaitingJob("j", problem, 0)], [], freed, memory), PLAIN, counting)
        memory = decided.memory
        assert [standing.reason and standing.reason.permanent for standing in decided.queue] == [True]
    assert asked == ["j"]


def test_the_window_is_not_used_up_before_the_first_job_of_a_tenant() -> None:
    cluster = Cluster.make([Node("a", cpu=3), Node("b", cpu=3), Node("c", cpu=1)], [])
    large = Problem.make(cluster, [Task(str(t), cpu=2) for t in range(3)])
    jobs = [WaitingJob(f"j{i}", large, i, tenant="many") for i in range(20)]  # overdue
    jobs.append(wants(cluster, "first", 1, submitted=80, tenant="other"))
    decided = cycle(State(90, Ledger(cluster), jobs, [], 0), replace(PLAIN, window=2), solve)
    assert (started(decided), len(decided.refused), decided.more) == (["first"], 2, True)


def test_the_solver_is_not_asked_what_the_nodes_alone_refuse() -> None:
    def asked(job: WaitingJob, cluster: Cluster) -> Result:
        raise AssertionError(f"the solver was asked about {job.name}")

    cluster = Cluster.make([Node("a", cpu=5, memory=1), Node("b", cpu=3, memory=9)], [])
    together = [Task(str(t), cpu=2) for t in range(4)]  # 8 in all are free, but b takes one of them and a two
    jobs = [WaitingJob("together", Problem.make(cluster, together), 0), wants(cluster, "alone", 4, memory=4)]
    decided = cycle(State(0, Ledger(cluster), jobs, [], 0), PLAIN, asked)
    assert {job: (why.code, why.permanent, why.proven) for job, why in decided.refused.items()} == {
        "together": ("packing", True, True),
        "alone": ("no-node-fits", True, True),
    }


def test_a_job_waits_for_bandwidth_while_others_will_end_and_not_longer_than_its_patience() -> None:
    cluster = Cluster.make([Node("a", cpu=6), Node("b", cpu=4)], [Link("a", "b", 10), Link("b", "a", 10)])
    talkative = Problem.make(cluster, [Task("x", cpu=3), Task("y", cpu=3)], [Flow("x", "y", 1, 20)])
    parameters = replace(PLAIN, declined=0.1, patience_s=30)

    def at(now: float, lasts: float | None) -> Decisions:
        desk = Desk(cluster, parameters)
        desk.run(wants(cluster, "other", 1, lasts=lasts))
        return desk.at(now, WaitingJob("j", talkative, 0, expected_s=9))

    early = at(10, lasts=50)
    assert started(early) == []
    assert "satisfied to 47 %, 90 % are wanted" in early.queue[0].text()
    assert started(at(30, lasts=50)) == ["j"]
    assert started(at(10, lasts=None)) == ["j"]  # nobody has said that there will be more
    assert started(Desk(cluster, parameters).at(10, WaitingJob("j", talkative, 0, expected_s=9))) == ["j"]


def test_a_refusal_for_want_of_bandwidth_ends_with_the_patience() -> None:
    cluster = Cluster.make([Node("a", cpu=6), Node("b", cpu=4)], [Link("a", "b", 10), Link("b", "a", 10)])
    talkative = Problem.make(cluster, [Task("x", cpu=3), Task("y", cpu=3)], [Flow("x", "y", 1, 20)])
    desk = Desk(cluster, replace(PLAIN, declined=0.1, patience_s=30))
    desk.run(wants(cluster, "other", 1, lasts=99))
    assert started(desk.at(10, WaitingJob("j", talkative, 0, expected_s=9))) == []
    assert started(desk.at(30)) == ["j"]  # though nothing has become free


def test_large_holes_are_kept_whole() -> None:
    cluster = Cluster.make([Node("a", cpu=10), Node("b", cpu=10), Node("c", cpu=4)], [])
    jobs = [wants(cluster, "small", 3, lasts=100), wants(cluster, "large", 10, lasts=200, submitted=1)]
    jobs.append(wants(cluster, "other", 10, lasts=300, submitted=1))
    assert started(Desk(cluster).at(1, *jobs)) == ["small", "large", "other"]
    # A solver that balances puts the small one where most is free.
    assert len(started(Desk(cluster, replace(PLAIN, packing=())).at(1, *jobs))) == 2


def test_fewer_nodes_are_used_only_where_the_flows_are_satisfied() -> None:
    nodes = [Node("a", cpu=2), Node("b", cpu=2), Node("c", cpu=9), Node("d", cpu=9)]
    ends = [("a", "b", 4), ("b", "a", 4), ("c", "d", 10), ("d", "c", 10), ("b", "c", 10), ("c", "b", 10)]
    cluster = Cluster.make(nodes, [Link(*each) for each in ends])
    problem = Problem.make(cluster, [Task("x", cpu=2), Task("y", cpu=2)], [Flow("x", "y", 1, 8)])

    def satisfaction(satisfied: float) -> float:
        desk = Desk(cluster, replace(PLAIN, packing=(1.0,), satisfied=satisfied))
        (start,) = desk.at(0, WaitingJob("j", problem, 0)).starts
        (flow,) = start.plan.flows
        return 1.0 if len(flow.path) == 1 else (flow.bandwidth - 1) / 7

    assert satisfaction(1.0) == 1.0
    assert satisfaction(0.0) == pytest.approx(3 / 7)


def test_the_order_in_which_jobs_are_listed_changes_nothing() -> None:
    cluster = one_node()
    jobs = [wants(cluster, f"j{i}", 1 + i % 4, submitted=i % 3, lasts=5 + i % 5) for i in range(12)]
    runs = []
    for order in (jobs, jobs[::-1]):
        decided = Desk(cluster).at(3, *order)
        runs.append((started(decided), [(each.job, each.position, each.score) for each in decided.queue]))
    assert runs[0] == runs[1]
    assert [position for _, position, _ in runs[0][1]] == list(range(1, len(runs[0][1]) + 1))


def test_the_queue_says_why_and_until_when() -> None:
    cluster = one_node()
    desk = Desk(cluster)
    desk.run(wants(cluster, "a", 6, lasts=20))
    desk.run(wants(cluster, "b", 3, lasts=90))
    decided = desk.at(5, wants(cluster, "next", 7, submitted=5), wants(cluster, "never", 11, submitted=5))
    told: dict[str, Sequence[object]] = {
        each.job: (each.reason and each.reason.code, each.start_s, each.held_by) for each in decided.queue
    }
    assert told == {"next": ("cpu-per-node", 20, ("a",)), "never": ("cpu-per-node", None, ())}
    assert decided.refused.keys() == {"never"}
    assert decided.queue[0].to_dict()["score"]["total"] == decided.queue[0].score.total


def test_the_state_is_left_as_it_is() -> None:
    cluster = one_node()
    ledger = Ledger(cluster)
    job = wants(cluster, "j", 3)
    decided = cycle(State(0, ledger, [job], [], 0), PLAIN, solve)
    assert started(decided) == ["j"]
    assert ledger.jobs == ()
    assert np.array_equal(ledger.cluster.node_used, cluster.node_used)


@pytest.mark.parametrize(
    ("make", "field", "remedy"),
    [
        (lambda: Parameters(fit=-1), "fit", "0 takes it out"),
        (lambda: Parameters(priority=float("nan")), "priority", "0 or more"),
        (lambda: Parameters(waiting=-0.1), "waiting", "0 or more"),
        (lambda: Parameters(share=float("inf")), "share", "0 or more"),
        (lambda: Parameters(window=0), "window", "at least 1"),
        (lambda: Parameters(bound_s=0), "bound_s", "above 0"),
        (lambda: Parameters(overdue=1.5), "overdue", "0 to 1"),
        (lambda: Parameters(reservations=-1), "reservations", "0 keeps room for nobody"),
        (lambda: Parameters(packing=(0.5,)), "packing", "1 or more"),
        (lambda: Parameters(satisfied=2), "satisfied", "0 to 1"),
        (lambda: Tenant("t", weight=0), "tenants.t.weight", "leave it out for 1"),
        (lambda: Tenant("t", quota={"disk": 0.5}), "tenants.t.quota.disk", "cpu, memory, gpu, bandwidth"),
        (lambda: Tenant("t", quota={"cpu": 2}), "tenants.t.quota.cpu", "0 to 1"),
        (
            lambda: Tenant("t", guaranteed={"cpu": 0.6}, quota={"cpu": 0.5}),
            "tenants.t.guaranteed.cpu",
            "raise the quota",
        ),
        (lambda: Parameters(tenants=[Tenant("t"), Tenant("t")]), "tenants.t", "one place"),
        (
            lambda: Parameters(tenants=[Tenant("t", guaranteed={"gpu": 0.6}), Tenant("u", guaranteed={"gpu": 0.6})]),
            "tenants.guaranteed.gpu",
            "1 at most",
        ),
        (lambda: wants(one_node(), "j", 1, priority=101), "job.priority", "0..100"),
        (lambda: wants(one_node(), "j", 1, lasts=-1), "job.expected_s", "leave it out"),
        (lambda: wants(one_node(), "j", 1, submitted=float("nan")), "job.submitted_s", "a time"),
        (
            lambda: Desk(one_node(), Parameters(tenants=[Tenant("t")])).at(0, wants(one_node(), "j", 1, tenant="who")),
            "job.tenant",
            "add it to tenants",
        ),
    ],
)
def test_what_makes_no_sense_is_named_with_its_remedy(make: object, field: str, remedy: str) -> None:
    assert callable(make)
    with pytest.raises(ProblemError) as caught:
        make()
    assert caught.value.field == field
    assert remedy in caught.value.message
