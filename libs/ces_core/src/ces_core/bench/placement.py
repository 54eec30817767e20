"""The placement benchmark: solvers on the same single-job rounds, each decision warm, alone, timed and checked."""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ces_core.bench.truth import EQUAL, Truth
from ces_core.instance import read_instance
from ces_core.simulator.deciding import Decision, decide
from ces_core.simulator.rounds import Round, rounds
from ces_core.solvers import get_solver


@dataclass(frozen=True)
class Asked(ABC):
    """What every comparison on single jobs asks about: ``rounds`` of them for every regime and number of tasks.
    ``time_limit_s`` None leaves solvers to their own bounds."""

    regimes: tuple[str, ...]
    tasks: tuple[int, ...]
    rounds: int
    seed: int
    solvers: tuple[str, ...]
    time_limit_s: float | None

    @property
    def limits(self) -> tuple[float | None, ...]:
        """Each makes a decision; the first also that before the clock starts."""
        return (self.time_limit_s,)

    @abstractmethod
    def all_rounds(self) -> Iterator[Round]: ...


@dataclass(frozen=True)
class Question(Asked):
    """One network, and further limits in ``anytime``."""

    nodes: int | None
    topology: str
    anytime: tuple[float, ...]

    def all_rounds(self) -> Iterator[Round]:
        return rounds(self.regimes, self.tasks, self.rounds, self.seed, nodes=self.nodes, topology=self.topology)

    @property
    def limits(self) -> tuple[float | None, ...]:
        """The limit that the tables are about, then the others."""
        return (self.time_limit_s, *(limit for limit in self.anytime if limit != self.time_limit_s))


@dataclass(frozen=True)
class Answer:
    """One solver's answer in one round. The composite and its parts are None where it found no place."""

    round: Round
    solver: str
    limit_s: float | None
    composite: float | None
    load_imbalance: float | None
    bandwidth_satisfaction: float | None
    refused_for: str | None
    wall_ms: float
    cpu_ms: float

    @staticmethod
    def of(asked: Round, solver: str, limit_s: float | None, decision: Decision) -> Answer:
        metrics, reason = decision.result.metrics, decision.result.reason
        return Answer(
            round=asked,
            solver=solver,
            limit_s=limit_s,
            composite=metrics.composite if metrics else None,
            load_imbalance=metrics.load_imbalance if metrics else None,
            bandwidth_satisfaction=metrics.bandwidth_satisfaction if metrics else None,
            refused_for=reason.code if reason else None,
            wall_ms=decision.wall_s * 1e3,
            cpu_ms=decision.cpu_s * 1e3,
        )


def compare(question: Asked, advance: Callable[[], None]) -> list[Answer]:
    """Every solver's answers in every round. Raises BadDecisionError.

    Before the clock starts, a solver has decided the same round once, so that paths are known and code is compiled; it
    is timed on the round read anew, since a service meets a job and a state of the cluster only once.
    """
    found = []
    for asked in question.all_rounds():
        instance = asked.instance()
        warm = read_instance(instance)
        warm.cluster.topology.paths.warm()
        for name in question.solvers:
            solver = get_solver(name)
            decide(solver, warm, instance, seed=asked.seed, time_limit_s=question.limits[0])
            for limit in question.limits:
                decision = decide(solver, read_instance(instance), instance, seed=asked.seed, time_limit_s=limit)
                found.append(Answer.of(asked, name, limit, decision))
                advance()
    return found


class ContradictionError(RuntimeError):
    """An answer and a proof exclude each other: one of two solvers, or the checker, is wrong."""


def best_known(answers: Iterable[Answer], truths: Mapping[Round, Truth]) -> dict[Round, float]:
    """The best composite that anyone found in each round that has a place.

    Raises ContradictionError where an answer is better than what is proven to be possible.
    """
    best = {asked: truth.composite for asked, truth in truths.items() if truth.composite is not None}
    for answer in answers:
        if answer.composite is None:
            continue
        truth = truths.get(answer.round, Truth())
        said = f"{answer.round}: {answer.solver} found a plan of {answer.composite}"
        if truth.impossible:
            raise ContradictionError(f"{said}, the exact solver proved that there is none")
        if truth.bound is not None and answer.composite > truth.bound + EQUAL:
            raise ContradictionError(f"{said}, the exact solver proved that none is above {truth.bound}")
        best[answer.round] = max(best.get(answer.round, answer.composite), answer.composite)
    return best


def write_answers(out: Path, answers: Sequence[Answer]) -> None:
    """``decisions.csv`` under ``out``: one line per decision, with the seed that makes its instance."""
    with (out / "decisions.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        rest = [field for field in Answer.__dataclass_fields__ if field != "round"]
        writer.writerow([*(answers[0].round if answers else Round).__dataclass_fields__, *rest])
        for answer in answers:
            row = asdict(answer)
            writer.writerow([*row.pop("round").values(), *row.values()])
