"""A workload that drifts: days of decisions on record, a candidate that learns from them, its replay on a day that it
has not seen, its promotion, and what the former policy would have made of the day after. At last a poisoned policy is
forced on the scheduler, and taken back."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress

from ces_core.evolution.confidence import interval
from ces_core.evolution.decision_log import Decided, DecisionLog, read_log
from ces_core.evolution.folder import EvolutionFolder, basis_of
from ces_core.evolution.gate import Pairs, judged, must_return
from ces_core.evolution.pairing import Pair, compared, pairs_of
from ces_core.evolution.solvers import solver_of
from ces_core.evolution.state import BASE
from ces_core.learned.policy import SHIPPED
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.problem import Problem
from ces_core.solver import Solver
from ces_experiments.common.command import Experiment
from ces_experiments.common.console import counted
from ces_experiments.common.report import Found, Report
from ces_experiments.common.results import Grid
from ces_rl.evolve.comparison import replay
from ces_rl.evolve.lessons import chosen, learned_until, write_lessons

DAY_S = 86_400.0
FIRST_S = 1_800_014_400.0  # noon of the first day (UTC), as Unix time
LOG_BYTES = 1 << 30
Question = dict[str, Any]


def measure(question: Question, progress: Progress) -> Found:
    """Five days of decisions, the last one held out; then a day after the promotion."""
    with tempfile.TemporaryDirectory(prefix="ces-evolution-") as scratch:
        folder = EvolutionFolder(Path(scratch))
        folder.change(lambda state: state.model_copy(update={"basis": basis_of(question["solver"], None)}))
        live, each = solver_of(folder, folder.state(), BASE), question["decisions"]
        step = counted(progress, "decisions", 6 * each)
        for day in range(5):
            _log(folder, _drifted(question, day, each, live), live, day, step)
        version = _trained(folder, question, progress)
        replay(folder, folder.state(), version, read_log(folder.log), each)
        candidacy = pairs_of(folder.pairs(folder.candidacy(version.name, folder.state())))
        now_s = FIRST_S + 5 * DAY_S
        verdict = judged(candidacy, frozen=False, promoted_s=None, now_s=now_s)
        found = {"question": question, "policy": version.policy, "learned": version.decisions + version.synthetic}
        found["replay"] = _figures(candidacy) | {"against": list(verdict.against)}
        _log(folder, _drifted(question, 5, each, live), live, 5, step)
        candidate = solver_of(folder, folder.state(), version.name)
        found["day after"] = _figures(_on_day(folder, 5, live, candidate))
        found["before the drift"] = _figures(_beside(_usual(question, each, live), live, candidate, folder))
        found["poisoned"] = _poisoned(folder, live)
    return Found(found)


def _drifted(question: Question, day: int, count: int, solver: Solver) -> Iterator[Problem]:
    """Jobs of the drifted workload that have a place: another network, more traffic and less bandwidth than the shipped
    policy was trained on."""
    first, found = question["seed"] * 1_000_000 + day * 100_000, 0
    for number in range(100_000):
        shape = {"nodes": question["nodes"], "topology": question["topology"], "flow_probability": question["flows"]}
        problem = read_instance(random_instance(question["regime"], first + number, tasks=question["tasks"], **shape))
        if solver.solve(problem, seed=1).plan is not None:
            found += 1
            yield problem
        if found == count:
            return


def _usual(question: Question, count: int, solver: Solver) -> Iterator[Problem]:
    """Jobs as they were before: those of the thesis."""
    for number in range(count):
        problem = read_instance(random_instance("thesis", question["seed"] * 1_000_000 + 900_000 + number))
        if solver.solve(problem, seed=1).plan is not None:
            yield problem


def _log(folder: EvolutionFolder, problems: Iterator[Problem], solver: Solver, day: int, step: Any) -> None:
    log = DecisionLog(folder.log, LOG_BYTES)
    for number, problem in enumerate(problems):
        log.append(_decided(f"d{day}-{number}.1", problem, solver, FIRST_S + day * DAY_S + number))
        step()
    log.close()


def _decided(name: str, problem: Problem, solver: Solver, at_s: float) -> Decided:
    began = time.perf_counter()
    result = solver.solve(problem, seed=1)
    ms = (time.perf_counter() - began) * 1000
    assert result.plan is not None
    assert result.metrics is not None
    version = None if result.advice is None else result.advice.version
    flows = [flow.to_dict() for flow in result.plan.flows]
    score = result.metrics.objective
    return Decided(
        name, at_s, problem, 1, None, result.solver, version, False, score, ms, result.plan.assignments, flows
    )


def _trained(folder: EvolutionFolder, question: Question, progress: Progress) -> Any:
    from ces_rl.run import Run, train

    decisions = read_log(folder.log).decisions
    until_s = learned_until([each.at_s for each in decisions], 0.2)
    logged = chosen(decisions, until_s, question["most"], question["seed"])
    with tempfile.TemporaryDirectory(prefix="ces-lessons-") as scratch:
        lessons, out = Path(scratch) / "instances", Path(scratch) / "run"
        synthetic = write_lessons(logged, lessons, question["seed"])
        settings = {name: question[name] for name in ("updates", "episodes", "limit")}
        run = Run.make("imitation", "placement", question["seed"], settings, {"instances": str(lessons)}, out)
        bar = progress.add_task("updates", total=question["updates"])
        card = train(run, news=lambda done, *_: progress.update(bar, completed=done))
        counts = {"decisions": len(logged), "synthetic": synthetic, "seed": question["seed"]}
        about = {"made_s": FIRST_S + 5 * DAY_S, "learned_until_s": until_s, "policy": card["version"]}
        return folder.add(out / run.env.file, card, **about, **counts)


def _on_day(folder: EvolutionFolder, day: int, other: Solver, one: Solver) -> Pairs:
    decisions = [each for each in read_log(folder.log).decisions if each.at_s >= FIRST_S + day * DAY_S]
    return pairs_of(pair for each in decisions if (pair := compared(each, other, one)) is not None)


def _beside(problems: Iterator[Problem], other: Solver, one: Solver, folder: EvolutionFolder) -> Pairs:
    """On problems that are not in the log."""
    apart = EvolutionFolder(folder.path / "before")
    _log(apart, problems, other, 0, lambda: None)
    return _on_day(apart, 0, other, one)


def _poisoned(folder: EvolutionFolder, former: Solver) -> Mapping[str, Any]:
    """How many decisions a policy with all scores turned round makes, forced on the scheduler, before the former one
    comes back."""
    solver = solver_of(folder, folder.state(), BASE).using(turned_round(folder.path / "poisoned.onnx"))
    found: list[Pair] = []
    for count, each in enumerate(read_log(folder.log).decisions, 1):
        pair = compared(each, former, solver)
        if pair is not None:
            found.append(pair)
        why = must_return(pairs_of(found), count, frozen=False)
        if why is not None:
            return {"decisions": count, "why": why}
    return {"decisions": None, "why": "it stays"}


def _figures(pairs: Pairs) -> dict[str, Any]:
    middle = [float(value) for value in np.quantile(pairs.gains, (0.1, 0.5, 0.9))] if len(pairs) else []
    found = asdict(interval(pairs.gains))
    return found | {"quantiles": middle, "refused": int(pairs.refused.sum()), "slower": pairs.slower}


def turned_round(path: Path) -> Path:
    """Write the shipped policy with all its scores turned round: its best node is the worst. Needs onnx."""
    import onnx

    model = onnx.load(str(SHIPPED))
    output = model.graph.output[0].name
    for node in model.graph.node:
        for names in (node.input, node.output):
            for at, name in enumerate(names):
                if name == output:
                    names[at] = f"{output}_before"
    model.graph.node.append(onnx.helper.make_node("Neg", [f"{output}_before"], [output]))
    onnx.save(model, str(path))
    return path


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """The candidate beside the shipped policy, on three kinds of days."""
    question = results["question"]
    rows = [
        [
            what,
            str(found["count"]),
            f"{found['mean']:+.4f}",
            f"{found['low']:+.4f} to {found['high']:+.4f}",
            str(found["refused"]),
            f"{found['slower']:.2f}",
        ]
        for what in ("replay", "day after", "before the drift")
        for found in (results[what],)
    ]
    title = (
        f"Gain of a policy that has learned from four days over the shipped one, by {question['solver']}, seed "
        f"{question['seed']}: {question['topology']} of {question['nodes']} nodes, regime {question['regime']}, "
        f"{question['tasks']} tasks, flows with probability {question['flows']:g}. A poisoned policy stayed for "
        f"{results['poisoned']['decisions']} decisions."
    )
    header = ("on", "decisions", "mean gain", "95 %, at any time", "refused", "slower")
    return [Grid(title, header, rows)]


EVOLUTION = Experiment(dict, measure, Report(tables))
