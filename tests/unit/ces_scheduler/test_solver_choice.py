"""The scheduler with a learned solver: which policy it takes, what plans keep of it, and what stands in for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bus_manager import FakeManager
from cluster_state import MBIT, job, node, wire
from memory_bus import MemoryBus
from queue_looks import SOON, placing

from ces_common import subjects
from ces_common.jobfile import JobFile
from ces_common.messages.queries import PlanAnswer, PlanQuery
from ces_core.learned.policy import LARGEST, SHIPPED, VERSION_KEY, Policy, load_policy
from ces_core.learned.policy_solvers import IMITATION
from ces_core.learned.schema import schema_hash
from ces_core.registry import get_solver
from ces_core.search.solver import SEARCH
from ces_core.warm_up import warm_up
from ces_scheduler.__main__ import SchedulerSettings
from ces_scheduler.service import Scheduler
from ces_scheduler.solver_choice import Choice, choose

NODES = [node("a", 1), node("b", 2), node("c", 3)]
LINKS = [*wire("a", "b"), *wire("b", "c")]
GOOD = SHIPPED.read_bytes()


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    for name in ("imitation", "search"):
        warm_up(get_solver(name))


@pytest.fixture
def manager(manager: FakeManager) -> FakeManager:
    asked = [(0, 1, 10 * MBIT, 50 * MBIT)]
    manager.change(nodes=NODES, links=LINKS, jobs=[job("q", tasks=2, asked=asked, task={"cpu": 3000})])
    return manager


async def plan_by(choice: Choice, bus: MemoryBus, manager: FakeManager) -> Any:
    """What the scheduler proposes for the one job that waits."""
    scheduler = Scheduler(bus, placing(choice.solver, fallback=choice.fallback), 30.0, now=lambda: SOON)
    await scheduler.step()
    await manager.settled()
    (plan,) = manager.told("plan.proposed")
    return plan


async def asked(choice: Choice, bus: MemoryBus, manager: FakeManager) -> PlanAnswer:
    """What it answers to a dry run of a job of two tasks."""
    file = JobFile.model_validate({"name": "what-if", "tasks": [{"name": "w", "replicas": 2, "command": ["x"]}]})
    scheduler = Scheduler(bus, placing(choice.solver, fallback=choice.fallback), 30.0, now=lambda: SOON)
    serving = asyncio.create_task(scheduler.run())
    try:
        await manager.until(lambda: manager.asked > 0)
        raw = await bus.request(subjects.rpc("scheduler", "plan"), PlanQuery(job=file).encode(), timeout_s=60)
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await scheduler.reader.close()
    return PlanAnswer.model_validate_json(raw)


async def test_a_plan_keeps_the_policys_version_and_the_probability_of_every_chosen_node(
    bus: MemoryBus, manager: FakeManager
) -> None:
    plan = await plan_by(choose("imitation", None), bus, manager)
    assert plan.solver == "imitation"
    kept = plan.considered["policy"]
    assert kept["version"] == load_policy(SHIPPED).version
    assert kept["probabilities"].keys() == plan.assignments.keys()
    assert all(0 < probability <= 1 for probability in kept["probabilities"].values())
    assert plan.considered["fallback"] is None


async def test_a_dry_run_tells_the_same(bus: MemoryBus, manager: FakeManager) -> None:
    answer = await asked(choose("imitation", None), bus, manager)
    assert answer.policy is not None
    assert answer.policy.version == load_policy(SHIPPED).version
    assert answer.policy.probabilities.keys() == answer.assignments.keys()
    assert answer.fallback is None


async def test_a_plan_without_a_policy_names_none(bus: MemoryBus, manager: FakeManager) -> None:
    plan = await plan_by(choose("search", None), bus, manager)
    assert plan.considered["policy"] is None
    assert plan.considered["fallback"] is None


def test_the_file_that_the_setting_names_is_the_policy(tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    version = load_policy(SHIPPED).version
    renamed = "x" * len(version)
    other.write_bytes(GOOD.replace(version.encode(), renamed.encode()))
    solver = choose("imitation", other).solver
    assert isinstance(solver, type(IMITATION))
    assert solver.policy is not None
    assert solver.policy.version == renamed


def test_a_solver_that_asks_no_policy_reads_none(tmp_path: Path) -> None:
    assert choose("search", tmp_path / "missing.onnx") == Choice(SEARCH)


@pytest.mark.parametrize(("value", "policy"), [("", None), ("/etc/ces/policy.onnx", Path("/etc/ces/policy.onnx"))])
def test_an_empty_setting_is_the_shipped_policy(
    monkeypatch: pytest.MonkeyPatch, value: str, policy: Path | None
) -> None:
    monkeypatch.setenv("CES_POLICY", value)
    assert SchedulerSettings().policy == policy


def _large(file: Path) -> None:
    with file.open("wb") as sparse:
        sparse.truncate(LARGEST + 1)


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda file: None, "No such file"),
    "a folder": (lambda file: file.mkdir(), "is no file"),
    "empty": (lambda file: file.touch(), "no ONNX file"),
    "truncated": (lambda file: file.write_bytes(GOOD[: len(GOOD) // 2]), "no ONNX file"),
    "something else": (lambda file: file.write_text("to be, or not"), "no ONNX file"),
    "of other features": (
        lambda file: file.write_bytes(GOOD.replace(schema_hash().encode(), b"0" * len(schema_hash()))),
        "other features",
    ),
    "without a version": (
        lambda file: file.write_bytes(GOOD.replace(VERSION_KEY.encode(), b"xes.version")),
        "no version",
    ),
    "too large": (_large, "at most"),
}


@pytest.mark.parametrize("kind", BAD)
async def test_a_file_that_is_refused_is_named_and_search_decides(
    kind: str, tmp_path: Path, bus: MemoryBus, manager: FakeManager
) -> None:
    spoil, reason = BAD[kind]
    file = tmp_path / "policy.onnx"
    spoil(file)
    choice = choose("imitation", file)
    assert choice.solver is SEARCH
    assert choice.fallback is not None
    assert choice.fallback.startswith(f"imitation could not be used: {file}: ")
    assert reason in choice.fallback
    plan = await plan_by(choice, bus, manager)
    assert plan.solver == "search"
    assert plan.considered["fallback"] == choice.fallback
    assert plan.considered["policy"] is None


async def test_a_dry_run_says_too_that_the_policy_was_refused(
    tmp_path: Path, bus: MemoryBus, manager: FakeManager
) -> None:
    choice = choose("imitation", tmp_path / "missing.onnx")
    answer = await asked(choice, bus, manager)
    assert answer.feasible
    assert (answer.solver, answer.policy, answer.fallback) == ("search", None, choice.fallback)


async def test_a_policy_that_answers_nonsense_leaves_the_decision_to_search(
    bus: MemoryBus, manager: FakeManager
) -> None:
    class Broken:
        def run(self, _: object, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
            return [np.full_like(inputs["mask"], np.nan)]

    plan = await plan_by(Choice(replace(IMITATION, policy=Policy("broken", {}, Broken()))), bus, manager)
    assert plan.solver == "search"
    assert plan.considered["policy"] is None
    assert "not finite" in plan.considered["fallback"]
