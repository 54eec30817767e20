"""The comparison of policies for malleable jobs on published traces: how many of the jobs submitted end in time."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import typer
from rich.progress import Progress

from ces_experiments.common.console import told
from ces_experiments.common.report import Found
from ces_experiments.malleable.contenders import AS_PUBLISHED, POLICIES, Setting
from ces_experiments.malleable.inputs import GOLDEN, KNOWN, TOLERANCES, USUAL_TOLERANCE, Input
from ces_sim.malleable.engine import World, simulate
from ces_sim.malleable.outcome import feasible

COMPAT = "elasticflow"


@dataclass(frozen=True)
class Question:
    """``compat``: count as the public simulator of that name does, where there is one."""

    inputs: tuple[Input, ...]
    policies: tuple[str, ...]
    compat: str | None
    seed: int

    @staticmethod
    def of(inputs: tuple[Input, ...], only: str | None, compat: str | None, seed: int) -> Question:
        """Raises typer.BadParameter."""
        known = AS_PUBLISHED if compat else POLICIES
        names = tuple(known) if only is None else tuple(name.strip() for name in only.split(","))
        for name in names:
            if name not in known:
                raise typer.BadParameter(f"{name!r} is none of {', '.join(known)}", param_hint="--policies")
        return Question(inputs, names, compat, seed)


def compat(flag: str, text: str | None) -> str | None:
    """Raises typer.BadParameter."""
    if text not in (None, COMPAT):
        raise typer.BadParameter(f"{text!r} is not {COMPAT}", param_hint=flag)
    return text


def measure(question: Question, progress: Progress) -> Found:
    """By input: how many jobs there are, how many could be in time at best, and what each policy comes to."""
    step = told(progress, len(question.inputs) * len(question.policies))
    found: dict[str, dict[str, Any]] = {}
    for given in question.inputs:
        jobs = given.jobs()
        malleable = [job.malleable(given.spec.capacity) for job in jobs]
        policies = {}
        for name in question.policies:
            step(f"{given.trace} {name}")
            began = time.perf_counter()
            figures = _published(given, name) if question.compat else _simulated(question, given, name)
            policies[name] = figures | {"seconds": time.perf_counter() - began}
        found[given.title] = {"jobs": len(jobs), "feasible": feasible(malleable), "policies": policies}
    failure = None
    if missed := [text for given in question.inputs for text in _missed(given, found[given.title]["policies"])]:
        failure = f"further from the published figures than allowed: {'; '.join(missed)}" if question.compat else None
    asked = {"inputs": [given.title for given in question.inputs], **_told(question)}
    return Found({"question": asked, "inputs": found}, failure=failure)


def _told(question: Question) -> dict[str, Any]:
    return {key: value for key, value in asdict(question).items() if key != "inputs"}


def _published(given: Input, name: str) -> dict[str, Any]:
    jobs = given.jobs()
    tally = AS_PUBLISHED[name](given, jobs)
    golden = GOLDEN.get(given.trace, {}).get(name) if KNOWN.get(given.trace) == given else None
    return {
        "satisfied": len(tally.on_time) / len(jobs),
        "refused": len(tally.refused) / len(jobs),
        "on_time": len(tally.on_time),
        "published": golden,
    }


def _simulated(question: Question, given: Input, name: str) -> dict[str, Any]:
    jobs = given.jobs()
    policy = POLICIES[name](Setting.of(given, jobs, question.seed))
    malleable = [job.malleable(given.spec.capacity) for job in jobs]
    outcome = simulate(malleable, policy, World(given.spec.capacity))
    return outcome.figures() | {"on_time": sum(fate.on_time for fate in outcome.fates)}


def _missed(given: Input, policies: dict[str, Any]) -> list[str]:
    return [
        f"{given.trace} {name} {found['satisfied']:.3f} for {golden:.3f}"
        for name, found in policies.items()
        if (golden := found.get("published")) is not None
        and abs(found["satisfied"] - golden) > TOLERANCES.get(name, USUAL_TOLERANCE)
    ]
