"""The experiment's scenarios, what it reads off a run, and what it tells of many."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_common.jobfile import JobFile
from ces_common.messages.api import FlowHop, FlowRates, FlowSample, FlowView, JobFlowsView, PlanView
from ces_common.shares import LEAST_RATE, reservable
from ces_common.states import JobState
from ces_testbed.bench.testbed import scenario as scenarios
from ces_testbed.bench.testbed.plots import testbed_plots as draw
from ces_testbed.bench.testbed.question import PLAIN, Question
from ces_testbed.bench.testbed.readings import Planned, carried, delivered, promised, thinned, trained
from ces_testbed.bench.testbed.report import grids
from ces_testbed.bench.testbed.summary import by_seed, sooner, summary, times
from ces_testbed.bench.testbed.trial import enforced

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


def test_each_scheduler_comes_first_in_its_turn() -> None:
    question = Question(schedulers=("a", "b", "c"), architectures=("ring",), seeds=(1, 2, 3, 4))
    assert ["".join(question.in_turn(place)) for place in range(4)] == ["abc", "bca", "cab", "abc"]
    assert question.runs == 12


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
    assert [promised(each) for each in (kept, shared, unknown, local)] == [4 * MBIT, LEAST_RATE, None, None]
    assert enforced(flows_view(kept, local), reserve=True)
    assert not enforced(flows_view(kept, shared), reserve=True)
    assert not enforced(flows_view(kept, shared), reserve=False)
    assert enforced(flows_view(shared, local), reserve=False)
    assert not enforced(flows_view(unknown), reserve=True)


def log(rounds: int, seconds: float, *, over: bool = True) -> Iterator[str]:
    yield "rank 0: some words"
    for i in range(1, rounds + 1):
        yield json.dumps({"progress": {"round": i, "seconds": i, "accuracy": i / rounds}})
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
    assert trained({"w-0": log(3, 4.0), "w-1": log(2, 5.0, over=False)}) is None
    assert trained({}) is None


def test_a_long_curve_keeps_its_ends() -> None:
    points = [(float(i), i / 1000) for i in range(1000)]
    kept = thinned(points, 40)
    assert len(kept) == 40
    assert (kept[0], kept[-1]) == (points[0], points[-1])


def run_of(seed: int, architecture: str, scheduler: str, seconds: float | None, *, placed: bool = True) -> Any:
    """``seconds`` None: the accuracy was not reached."""
    key = {"seed": seed, "architecture": architecture, "scheduler": scheduler, "placed": placed}
    if not placed:
        return key | {"reason": "no room"}
    planned = {
        "load_imbalance": 0.2, "bandwidth_satisfaction": 0.6, "composite": 0.7, "local": 0.2, "nodes": 4
    }  # fmt: skip
    carried = {"src": "a", "dst": "b", "hops": 2, "given": 2 * MBIT, "mean": 1e6, "most": 1.8e6, "reports": 3}
    training = {
        "seconds": seconds, "rounds": 9, "accuracy": 0.9, "megabytes": 1, "communicating": 0.9, "curve": []
    }  # fmt: skip
    return key | {
        "solver": scheduler,
        "planned": planned,
        "flows": [carried],
        "training": training if seconds is not None else None,
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
    assert by_seed(runs, "ces-ppo", PLAIN, 90) == pytest.approx({1: 18**0.5, 2: (4 * 20 / 90) ** 0.5})
    assert sooner(runs, "random", PLAIN, 90) is None


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
    assert sooner_table.rows[0][1:] == ["-", "-", "-", "-"]
    assert sooner_table.rows[1][1:4] == ["2.83 (2)", "~1.41 (2)", "~2.00 (4)"]
    assert len(planned.rows) == len(took.rows) == 9
    assert [row[0] for row in measured.rows] == ["random", "ces-ppo", PLAIN]
    assert all(len(row) == len(table.columns) for table in grids(results) for row in table.rows)
    draw(results, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["planned.png", "time-to-accuracy.png"]


def test_without_the_plain_network_nothing_is_compared_with_it(results: dict[str, Any]) -> None:
    results["question"]["schedulers"].remove(PLAIN)
    assert len(grids(results)) == 3
