"""The experiment's scenarios, what it reads off a run, and what it tells of many."""

from __future__ import annotations

import json
import os
import random
import signal
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from click import unstyle
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from ces_common.jobfile import JobFile
from ces_common.messages.api import FlowHop, FlowRates, FlowSample, FlowView, JobFlowsView, JobView, PlanView
from ces_common.shares import LEAST_RATE, reservable
from ces_common.states import JobState
from ces_testbed.bench.commands import on_testbed
from ces_testbed.bench.ending import SIGNALS, ended_tidily, undisturbed
from ces_testbed.bench.testbed import run as running
from ces_testbed.bench.testbed import scenario as scenarios
from ces_testbed.bench.testbed.plots import testbed_plots as draw
from ces_testbed.bench.testbed.question import PLAIN, Question
from ces_testbed.bench.testbed.readings import (
    Planned,
    carried,
    delivered,
    promised,
    record,
    thinned,
    trained,
)
from ces_testbed.bench.testbed.report import grids
from ces_testbed.bench.testbed.summary import (
    LeftOut,
    by_seed,
    left_out,
    reached,
    sooner,
    summary,
    times,
)
from ces_testbed.bench.testbed.trial import enforced, failure, run_job
from ces_testbed.errors import TestbedError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MBIT = 1_000_000
ARCHITECTURES = list(scenarios.TRAINING)
seeds = st.integers(0, 10_000)


def pairs(job: JobFile) -> set[tuple[int, int]]:
    ranks = {task.name: task.rank for task in job.expand_tasks()}
    return {(ranks[flow.src], ranks[flow.dst]) for flow in job.expand_flows()}


def test_four_nanos_and_six_xaviers_on_a_switch_and_a_mesh() -> None:
    topology = scenarios.topology()
    assert [(node.name[:2], node.cpu) for node in topology.workers].count(("na", 4000)) == 4
    assert [(node.name[:2], node.cpu) for node in topology.workers].count(("nx", 6000)) == 6
    switched = [wire for wire in topology.wires if "s1" in wire]
    assert (len(switched), len(topology.wires)) == (10, 15)


@given(seeds)
def test_the_same_seed_is_the_same_scenario(seed: int) -> None:
    first, again = (scenarios.scenario(seed, ARCHITECTURES, 0.9, 60) for _ in range(2))
    assert first == again
    assert first.background != scenarios.scenario(seed + 1, ARCHITECTURES, 0.9, 60).background


@given(seeds)
def test_background_streams_fit_every_link_and_take_the_only_shortest_way(seed: int) -> None:
    out: defaultdict[str, int] = defaultdict(int)
    into: defaultdict[str, int] = defaultdict(int)
    for (src, dst), rate in scenarios.streams(random.Random(seed)).items():
        out[src], into[dst] = out[src] + rate, into[dst] + rate
        assert (src, dst) not in scenarios.MESH
        assert (dst, src) not in scenarios.MESH
    most = reservable(scenarios.LINK)
    assert all(rate <= most for rate in (*out.values(), *into.values()))


@given(seeds)
def test_the_background_lies_on_every_host_and_leaves_half_of_it(seed: int) -> None:
    nodes = {node.name: node for node in scenarios.topology().workers}
    tasks = scenarios.background(seed, 60).expand_tasks()
    assert {task.labels["host"] for task in tasks} == set(nodes)
    for task in tasks:
        node = nodes[task.labels["host"]]
        assert 0.1 <= task.cpu / node.cpu <= 0.5
        assert 0.1 <= task.memory / node.memory <= 0.5


@given(seeds, st.sampled_from(ARCHITECTURES))
def test_jobs_are_of_their_architecture(seed: int, architecture: str) -> None:
    job = scenarios.training(seed, architecture, 0.9)
    assert len(job.expand_tasks()) == scenarios.TASKS
    edges = pairs(job)
    if architecture == "ring":
        assert edges == {(i, (i + 1) % 5) for i in range(5)}
        return
    assert edges == {(b, a) for a, b in edges}
    up = {(a, b) for a, b in edges if a < b}
    if architecture == "parameter-server":
        assert up == {(0, i) for i in range(1, 5)}
    elif architecture == "etree":
        parents = {b: a for a, b in up}
        assert len(up) == len(parents) == 4
        assert any(parents[parents[i]] == 0 for i in parents if parents[i])
    else:
        known = {0}
        for _ in range(4):
            known |= {b for a, b in edges if a in known}
        assert known == set(range(5))


@given(seeds, st.sampled_from(ARCHITECTURES))
def test_without_reservations_only_the_minimum_changes(seed: int, architecture: str) -> None:
    job = scenarios.training(seed, architecture, 0.9)
    plain = scenarios.without_reservations(job)
    assert {flow.min for flow in plain.expand_flows()} == {LEAST_RATE}
    assert [(f.src, f.dst, f.max) for f in plain.expand_flows()] == [(f.src, f.dst, f.max) for f in job.expand_flows()]
    assert plain.expand_tasks() == job.expand_tasks()


def test_the_order_of_schedulers_is_drawn_by_the_seed() -> None:
    question = Question(schedulers=("a", "b", "c"), architectures=("ring",), seeds=tuple(range(100)))
    orders = {seed: "".join(question.in_order(seed)) for seed in question.seeds}
    assert orders == {seed: "".join(question.in_order(seed)) for seed in question.seeds}
    assert set(orders.values()) == {"abc", "acb", "bac", "bca", "cab", "cba"}
    assert question.runs == 300


def test_the_usual_seeds_are_not_those_of_trials() -> None:
    assert Question().seeds == (6, 7, 8, 9, 10)


def test_the_same_choice_of_nodes_is_compared_with_and_without_bandwidth_control() -> None:
    assert {"least-allocated", PLAIN} <= set(Question().schedulers)


@pytest.mark.parametrize("limit", ["inf", "nan", "3601", "4"])
def test_a_limit_that_is_none_is_refused(limit: str) -> None:
    app = typer.Typer()
    app.command()(on_testbed)
    answer = CliRunner().invoke(app, ["--limit-s", limit])
    assert answer.exit_code == 2
    assert "--limit-s" in unstyle(answer.output)


def flow(src: str, dst: str, bandwidth: int, path: list[str], rates: list[list[float]], given: int = 0) -> FlowRates:
    """``rates``: what each hop's source reported."""
    hops = [
        FlowHop(src=a, dst=b, samples=[FlowSample(at=NOW, rate=rate, given=given) for rate in told])
        for a, b, told in zip(path, path[1:], rates, strict=False)
    ]
    return FlowRates(src=src, dst=dst, min=1, max=bandwidth, bandwidth=bandwidth, path=path, hops=hops)


def flows_view(*flows: FlowRates) -> JobFlowsView:
    return JobFlowsView(id="1", name="j", state=JobState.RUNNING, at=NOW, flows=list(flows))


def test_a_plan_is_judged_by_what_was_asked_for() -> None:
    job = scenarios.training(1, "ring", 0.9)
    asked = job.expand_flows()
    given = [asked[0].max, asked[1].min // 2, asked[2].min, (asked[3].min + asked[3].max) / 2, asked[4].max]
    paths = [["a"], ["a", "b"], ["a", "b"], ["b", "s", "c"], ["c", "a"]]
    flows = [
        FlowView(src=each.src, dst=each.dst, min=0, max=each.max, bandwidth=int(rate), path=path)
        for each, rate, path in zip(asked, given, paths, strict=True)
    ]
    metrics = {"load_imbalance": 0.2, "bandwidth_satisfaction": 0.99, "composite": 0.99}
    plan = PlanView(
        plan="p", job="1", attempt=1, solver="x", version=1, committed_at=NOW, metrics=metrics, flows=flows,
        assignments={"worker0-0": "a", "worker1-0": "a", "worker2-0": "b", "worker3-0": "c", "worker4-0": "a"},
    )  # fmt: skip
    found = Planned.of(plan, job)
    assert found.bandwidth_satisfaction == pytest.approx(2.5 / 5)  # below the minimum is nothing, not less
    assert found.composite == pytest.approx(0.5 * 0.8 + 0.5 * 0.5)
    assert (found.local, found.nodes) == (0.2, 3)


def test_what_flows_carried_is_told_by_their_sources() -> None:
    view = flows_view(
        flow("a", "b", 4 * MBIT, ["n1", "s", "n2"], [[1e6, 3e6], [1e6, 1e6]]),
        flow("b", "a", 4 * MBIT, ["n1"], []),
        flow("c", "a", 4 * MBIT, ["n2", "n1"], [[]]),
    )
    [found] = carried(view)
    assert (found.src, found.hops, found.mean, found.most, found.reports) == ("a", 2, 2e6, 3e6, 2)
    assert delivered(view) == pytest.approx(0.25)
    assert delivered(flows_view()) is None


def test_reservations_are_in_force_once_every_link_says_so() -> None:
    kept = flow("a", "b", 4 * MBIT, ["n1", "s", "n2"], [[1.0], [1.0]], given=4 * MBIT)
    shared = flow("a", "b", 4 * MBIT, ["n1", "s", "n2"], [[1.0], [1.0]], given=LEAST_RATE)
    unknown = flow("a", "b", 4 * MBIT, ["n1", "s", "n2"], [[1.0], []], given=4 * MBIT)
    local = flow("a", "b", 4 * MBIT, ["n1"], [])
    whole, least = [4 * MBIT] * 2, [LEAST_RATE] * 2
    assert [promised(each) for each in (kept, shared, unknown, local)] == [whole, least, None, None]
    assert enforced(flows_view(kept, local), reserve=True)
    assert not enforced(flows_view(kept, shared), reserve=True)
    assert not enforced(flows_view(kept, shared), reserve=False)
    assert enforced(flows_view(shared, local), reserve=False)
    assert not enforced(flows_view(unknown), reserve=True)
    assert not enforced(flows_view(unknown), reserve=False)


def test_a_network_of_which_one_link_still_reserves_is_neither() -> None:
    half = flow("a", "b", 4 * MBIT, ["n1", "s", "n2"], [[1.0], [1.0]])
    half.hops[0].samples[0] = FlowSample(at=NOW, rate=1.0, given=LEAST_RATE)
    half.hops[1].samples[0] = FlowSample(at=NOW, rate=1.0, given=4 * MBIT)
    assert not enforced(flows_view(half), reserve=True)
    assert not enforced(flows_view(half), reserve=False)


def log(rounds: int, seconds: float, *, over: bool = True) -> Iterator[str]:
    yield "rank 0: some words"
    for i in range(1, rounds + 1):
        told = {"bytes_sent": 1000 * i, "seconds_communicating": i / 2}
        yield json.dumps({"progress": {"round": i, "seconds": i, "accuracy": i / rounds} | told})
    result = {
        "rounds": rounds, "seconds": seconds, "accuracy": 0.9, "bytes_sent": 500_000, "seconds_communicating": 1.0
    }  # fmt: skip
    if over:
        yield json.dumps({"result": result})


def test_a_training_is_done_when_its_last_worker_is() -> None:
    found = trained({"w-0": log(3, 4.0), "w-1": log(2, 5.0)})
    assert found is not None
    assert (found.seconds, found.rounds, found.megabytes) == (5.0, 3, 1.0)
    assert found.curve == [(1, 1 / 3), (2, 2 / 3), (3, 1.0)]
    assert found.ended
    assert (found.accuracy, found.best) == (0.9, 1.0)
    assert trained({}) is None


def test_a_training_that_was_cut_has_the_time_that_its_workers_told_of() -> None:
    found = trained({"w-0": log(3, 4.0), "w-1": log(7, 5.0, over=False), "w-2": iter(["", '{"progress": {"rou'])})
    assert found is not None
    assert not found.ended
    assert (found.seconds, found.rounds, found.best, len(found.curve)) == (7.0, 7, 1.0, 3)
    assert trained({"w-0": iter(["words", '{"progress": {"rou']), "w-1": iter([])}) is None


def job_view(state: JobState, reason: str | None = None) -> JobView:
    return JobView(
        id="1", name="j", state=state, reason=reason, priority=1, tasks=5, attempt=1, restarts=0, submitted_at=NOW
    )


def test_a_job_that_came_to_nothing_is_told_with_its_reason() -> None:
    whole, cut = trained({"w-0": log(3, 4.0)}), trained({"w-0": log(3, 4.0, over=False)})
    assert failure(job_view(JobState.SUCCEEDED), whole, ran=False) is None
    assert failure(job_view(JobState.CANCELLED), cut, ran=True) is None
    assert failure(job_view(JobState.CANCELLED), None, ran=True) is None
    assert failure(job_view(JobState.FAILED, "worker 1 ended with 1"), cut, ran=True) == "worker 1 ended with 1"
    assert "not all started" in str(failure(job_view(JobState.CANCELLED), None, ran=False))
    assert "log" in str(failure(job_view(JobState.SUCCEEDED), cut, ran=True))


def test_a_failed_job_is_kept_as_placed_without_a_training() -> None:
    job = scenarios.training(1, "ring", 0.9)
    flows = [FlowView(src=f.src, dst=f.dst, min=0, max=f.max, bandwidth=f.max, path=["a"]) for f in job.expand_flows()]
    plan = PlanView(
        plan="p", job="1", attempt=1, solver="x", version=1, committed_at=NOW, metrics={"load_imbalance": 0.2},
        flows=flows, assignments={"worker0-0": "a"},
    )  # fmt: skip
    cut = trained({"w-0": log(3, 4.0, over=False)})
    lost = record(plan, job, None, cut, None, "a worker ended")
    assert (lost["placed"], lost["training"], lost["failed"]) == (True, None, "a worker ended")
    assert record(plan, job, None, cut, None, None)["training"]["curve"] == [(1, 1 / 3), (2, 2 / 3), (3, 1.0)]


def test_a_long_curve_keeps_its_ends() -> None:
    points = [(float(i), i / 1000) for i in range(1000)]
    kept = thinned(points, 40)
    assert len(kept) == 40
    assert (kept[0], kept[-1]) == (points[0], points[-1])


def run_of(
    seed: int, architecture: str, scheduler: str, seconds: float | None, *, placed: bool = True, best: float = 0.91
) -> Any:
    """``seconds`` None: it was ended in its first round; ``best`` below 0.9: the accuracy was not reached."""
    key = {"seed": seed, "architecture": architecture, "scheduler": scheduler, "accuracy": 0.9, "placed": placed}
    if not placed:
        return key | {"reason": "no room"}
    planned = {
        "load_imbalance": 0.2, "bandwidth_satisfaction": 0.6, "composite": 0.7, "local": 0.2, "nodes": 4
    }  # fmt: skip
    carried = {"src": "a", "dst": "b", "hops": 2, "given": 2 * MBIT, "mean": 1e6, "most": 1.8e6, "reports": 3}
    training = {
        "ended": True, "seconds": seconds, "rounds": 9, "accuracy": 0.9, "best": best, "megabytes": 1,
        "communicating": 0.9, "curve": [],
    }  # fmt: skip
    return key | {
        "solver": scheduler,
        "planned": planned,
        "flows": [carried],
        "training": training if seconds is not None else None,
        "failed": None,
        "background_delivered": 0.98,
    }


@pytest.fixture
def results() -> dict[str, Any]:
    table = {
        ("ces-ppo", "gossip"): [5.0, 10.0],
        (PLAIN, "gossip"): [10.0, 40.0],
        ("ces-ppo", "etree"): [10.0, None],
        (PLAIN, "etree"): [None, 20.0],
    }
    runs = [
        run_of(seed, architecture, scheduler, seconds)
        for (scheduler, architecture), told in table.items()
        for seed, seconds in enumerate(told, 1)
    ]
    runs += [run_of(seed, name, "random", None, placed=False) for name in ("gossip", "etree") for seed in (1, 2)]
    machine = {"cpu": "a processor", "cores": 2, "python": "3.11", "command": "x", "commit": "y", "load_average": 0.1}
    return {
        "question": {
            "schedulers": ["random", "ces-ppo", PLAIN], "architectures": ["gossip", "etree"], "seeds": [1, 2],
            "accuracy": 0.9, "limit_s": 90.0,
        },
        "machine": machine,
        "runs": {f"{run['seed']} {run['architecture']} {run['scheduler']}": run for run in runs},
    }  # fmt: skip


def test_how_much_sooner_pairs_runs_by_seed_and_architecture(results: dict[str, Any]) -> None:
    runs = list(results["runs"].values())
    found = sooner([run for run in runs if run["architecture"] == "gossip"], "ces-ppo", PLAIN, 90)
    assert found is not None
    assert (found.pairs, found.least, found.most, found.cut_mine, found.cut_other) == (2, 2, 4, 0, 0)
    assert found.mean == pytest.approx(8**0.5)
    whole = sooner(runs, "ces-ppo", PLAIN, 90)
    assert whole is not None
    assert (whole.pairs, whole.cut_mine, whole.cut_other) == (4, 1, 1)
    assert whole.mean == pytest.approx((2 * 4 * 9 * 20 / 90) ** 0.25)
    each = by_seed(runs, "ces-ppo", PLAIN, ["gossip", "etree"], 90)
    assert {seed: found and found.mean for seed, found in each.items()} == pytest.approx(
        {1: 18**0.5, 2: (4 * 20 / 90) ** 0.5}
    )
    assert sooner(runs, "random", PLAIN, 90) is None


def test_only_an_accuracy_that_was_told_is_reached() -> None:
    assert reached(run_of(1, "gossip", "x", 5.0, best=0.9))
    assert not reached(run_of(1, "gossip", "x", 5.0, best=0.8999))  # its rounds were used up
    assert not reached(run_of(1, "gossip", "x", None))
    assert not reached(run_of(1, "gossip", "x", None, placed=False))
    cut = run_of(1, "gossip", "x", 88.0)
    cut["training"]["ended"] = False
    assert not reached(cut)
    exact = run_of(1, "gossip", "x", 5.0, best=0.9139) | {"accuracy": 0.91388889}  # workers tell four digits
    assert reached(exact)


def test_a_run_that_was_cut_counts_with_the_time_that_it_had(results: dict[str, Any]) -> None:
    runs = results["runs"]
    runs[f"1 etree {PLAIN}"] = run_of(1, "etree", PLAIN, 80.0)
    runs[f"1 etree {PLAIN}"]["training"]["ended"] = False
    found = sooner([runs["1 etree ces-ppo"], runs[f"1 etree {PLAIN}"]], "ces-ppo", PLAIN, 90)
    assert found is not None
    assert (found.mean, found.cut_mine, found.cut_other) == (pytest.approx(8), 0, 1)


def test_pairs_that_no_mean_has_are_counted(results: dict[str, Any]) -> None:
    runs = results["runs"]
    assert left_out(runs.values(), "random", PLAIN) == LeftOut(4, 0, 0)
    assert left_out(runs.values(), "ces-ppo", PLAIN) == LeftOut(0, 0, 0)
    runs[f"1 gossip {PLAIN}"] = run_of(1, "gossip", PLAIN, None, placed=False)
    runs["2 etree ces-ppo"] |= {"training": None, "failed": "a worker ended"}
    assert left_out(runs.values(), "ces-ppo", PLAIN) == LeftOut(0, 1, 1)
    whole = sooner(runs.values(), "ces-ppo", PLAIN, 90)
    assert whole is not None
    assert whole.pairs == 2
    assert by_seed(runs.values(), "ces-ppo", PLAIN, ["gossip", "etree"], 90) == {1: None, 2: None}
    row = grids(results)[0].rows[1]
    assert row[-4:] == ["-, -", "0", "1", "1"]
    failed = summary(results)["etree"]["ces-ppo"]
    assert (failed["placed"], failed["reached"], failed["failed"], failed["seconds"]["n"]) == (2, 1, 1, 1)


def test_what_was_not_placed_or_not_reached_is_counted_as_that(results: dict[str, Any]) -> None:
    found = summary(results)
    assert (found["all"]["random"]["runs"], found["all"]["random"]["placed"]) == (4, 0)
    assert found["all"]["random"]["composite"] == {"n": 0}
    etree = found["etree"]["ces-ppo"]
    assert (etree["placed"], etree["reached"], etree["seconds"]["max"]) == (2, 1, 90)
    assert times(run for run in results["runs"].values() if run["scheduler"] == "ces-ppo") == ([5, 10, 10], 4)


def test_tables_and_plots_hold_every_scheduler(results: dict[str, Any], tmp_path: Path) -> None:
    sooner_table, planned, measured, took = grids(results)
    assert [row[0] for row in sooner_table.rows] == ["random", "ces-ppo"]
    assert sooner_table.rows[0][1:] == ["-", "-", "-", "-, -", "4", "0", "0"]
    assert sooner_table.rows[1][1:] == ["2.83 (2)", "~1.41 (2)", "~2.00 (4)", ">4.24, <0.94", "0", "0", "0"]
    assert "both had a place" in sooner_table.title
    assert len(planned.rows) == len(took.rows) == 9
    assert [row[0] for row in measured.rows] == ["random", "ces-ppo", PLAIN]
    assert all(len(row) == len(table.columns) for table in grids(results) for row in table.rows)
    draw(results, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["planned.png", "time-to-accuracy.png"]


def test_without_the_plain_network_nothing_is_compared_with_it(results: dict[str, Any]) -> None:
    results["question"]["schedulers"].remove(PLAIN)
    assert len(grids(results)) == 3


@pytest.fixture
def handlers() -> Iterator[None]:
    """Signals as a program has them that was started from a terminal."""
    before = {each: signal.getsignal(each) for each in SIGNALS}
    for each in SIGNALS:
        signal.signal(each, signal.default_int_handler)
    yield
    for each, was in before.items():
        signal.signal(each, was)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_ends_and_a_second_changes_nothing(number: signal.Signals) -> None:
    cleaned = False

    def work() -> None:
        nonlocal cleaned
        try:
            signal.raise_signal(number)
        finally:
            for each in SIGNALS:
                signal.raise_signal(each)
            cleaned = True

    with pytest.raises(KeyboardInterrupt), ended_tidily():
        work()
    assert cleaned
    assert {signal.getsignal(each) for each in SIGNALS} == {signal.default_int_handler}


@pytest.mark.usefixtures("handlers")
def test_a_signal_takes_effect_after_what_must_not_be_disturbed() -> None:
    done: list[str] = []

    def work() -> None:
        with undisturbed():
            os.kill(os.getpid(), signal.SIGTERM)
            done.append("all of it")
        done.append("more")

    with pytest.raises(KeyboardInterrupt), ended_tidily():
        work()
    assert done == ["all of it"]


@pytest.mark.usefixtures("handlers")
def test_what_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with ended_tidily():
        signal.raise_signal(signal.SIGHUP)


def test_what_is_known_is_kept_whatever_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def two_runs(question: Question) -> Iterator[Any]:
        yield run_of(6, "gossip", "ces-ppo", 5.0)
        yield run_of(6, "gossip", PLAIN, 7.0)
        raise TestbedError("a link is gone")

    monkeypatch.setattr(running, "measure", two_runs)
    monkeypatch.setattr(running, "why_no_tc", lambda: None)
    monkeypatch.setattr(running, "describe", dict)
    told: list[str] = []
    with pytest.raises(TestbedError, match="a link is gone"):
        running.run(Question(("ces-ppo", PLAIN), ("gossip",)), tmp_path, told.append)
    kept = json.loads((tmp_path / "results.json").read_text())
    assert list(kept["runs"]) == told == ["6 gossip ces-ppo", f"6 gossip {PLAIN}"]
    assert kept["question"]["seeds"] == [6]


def test_what_a_cluster_leaves_behind_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Stuck:
        def __init__(self, *_: object) -> None: ...

        def start(self) -> None:
            raise TestbedError("a service ends again and again")

        def stop(self) -> list[str]:
            return ["namespace x", "process 7"]

    monkeypatch.setattr(running, "Cluster", Stuck)
    with pytest.raises(TestbedError, match="again and again"), running._bench():
        pass
    assert capsys.readouterr().err.splitlines() == [f"could not be removed: {x}" for x in ("namespace x", "process 7")]


class Jobs:
    """The jobs of a cluster on which a training runs for ever, until it is cancelled: then it is ``at_last``, and its
    logs are whole or not."""

    def __init__(self, job: JobFile, at_last: JobState) -> None:
        self._job, self._at_last, self._state = job, at_last, JobState.RUNNING

    def submit(self, job: JobFile) -> JobView:
        return self.get("1")

    def get(self, job: str) -> JobView:
        return job_view(self._state)

    def cancel(self, job: str) -> None:
        self._state = self._at_last

    def flows(self, job: str, since: datetime | None = None) -> JobFlowsView:
        return flows_view()

    def plan(self, job: str) -> PlanView:
        flows = [
            FlowView(src=f.src, dst=f.dst, min=0, max=f.max, bandwidth=f.max, path=["a"])
            for f in self._job.expand_flows()
        ]
        return PlanView(
            plan="p", job=job, attempt=1, solver="x", version=1, committed_at=NOW, metrics={"load_imbalance": 0.2},
            flows=flows, assignments={"worker0-0": "a"},
        )  # fmt: skip

    def logs(self, job: str, task: str) -> Iterator[str]:
        return log(4, 5.0, over=self._state == JobState.SUCCEEDED)


@pytest.mark.parametrize(
    ("at_last", "ended", "seconds"), [(JobState.CANCELLED, False, 4), (JobState.SUCCEEDED, True, 5)]
)
def test_a_job_that_ended_just_before_it_was_cut_is_not_cut(at_last: JobState, ended: bool, seconds: float) -> None:
    job = scenarios.training(1, "ring", 0.9)
    client: Any = SimpleNamespace(jobs=Jobs(job, at_last))
    found = run_job(client, job, job, "2", limit_s=0)
    assert found["failed"] is None
    assert (found["training"]["ended"], found["training"]["seconds"]) == (ended, seconds)
    assert len(found["training"]["curve"]) == 4


@pytest.mark.parametrize("guaranteed", [4 * MBIT, LEAST_RATE])
def test_a_run_counts_only_where_the_network_is_still_as_it_was_set(
    guaranteed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = flows_view(flow("a", "b", 4 * MBIT, ["n1", "n2"], [[1.0]], given=guaranteed))
    client: Any = SimpleNamespace(jobs=SimpleNamespace(flows=lambda job: view))
    cluster: Any = None
    bench = running.Bench(cluster, client)  # keeps reservations, as a cluster starts
    monkeypatch.setattr(running, "STILL_S", 0.0)
    if guaranteed == LEAST_RATE:
        with pytest.raises(TestbedError, match="network-ctl"):
            bench._unchanged("2")
    else:
        bench._unchanged("2")
