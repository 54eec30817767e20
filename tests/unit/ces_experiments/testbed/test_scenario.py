"""The experiment's question: its hosts, its jobs and the load beside them, drawn by a seed."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
import typer
from click import unstyle
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from ces_common.jobfile import JobFile
from ces_common.shares import LEAST_RATE, reservable
from ces_experiments.testbed import scenario as scenarios
from ces_experiments.testbed.commands import testbed as on_testbed
from ces_experiments.testbed.question import PLAIN, Question

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
