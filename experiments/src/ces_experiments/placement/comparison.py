"""The placement benchmark: solvers on the same single-job rounds, each decision warm, alone, timed and checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ces_core.model.instance import read_instance
from ces_core.network.cache import paths_of
from ces_core.registry import get_solver
from ces_core.solver import Learned, Solver
from ces_experiments.common.console import ContradictionError
from ces_experiments.placement.optima import EQUAL, Truth
from ces_sim.decision import Decision, decide
from ces_sim.rounds import Round, rounds

OWN = " with "
"""Between a solver and the file of the policy that it asks."""


@dataclass(frozen=True)
class Asked(ABC):
    """What every comparison on single jobs asks about: ``rounds`` of them for every regime and number of tasks.
    ``time_limit_s`` None leaves solvers to their own bounds; ``proof_s``: seconds for the proof of a round, None for
    no proofs. ``policy``: a file that solvers marked with :data:`OWN` ask instead of their usual policy."""

    regimes: tuple[str, ...]
    tasks: tuple[int, ...]
    rounds: int
    seed: int
    solvers: tuple[str, ...]
    time_limit_s: float | None
    proof_s: float | None = field(default=None, kw_only=True)
    policy: str | None = field(default=None, kw_only=True)

    @property
    def limits(self) -> tuple[float | None, ...]:
        """Each makes a decision; the first also that before the clock starts."""
        return (self.time_limit_s,)

    def solver(self, name: str) -> Solver:
        """The solver of this name, with the policy of one's own where it is marked so. Raises PolicyError."""
        usual, own, _ = name.partition(OWN)
        found = get_solver(usual)
        return found.using(Path(self.policy)) if own and self.policy and isinstance(found, Learned) else found

    @abstractmethod
    def all_rounds(self) -> Iterator[Round]: ...


@dataclass(frozen=True)
class Question(Asked):
    """One network, and further limits in ``anytime``. ``degree``: see Round."""

    nodes: int | None
    topology: str
    anytime: tuple[float, ...]
    degree: float | None = None

    def all_rounds(self) -> Iterator[Round]:
        network: dict[str, Any] = {"nodes": self.nodes, "topology": self.topology, "degree": self.degree}
        return rounds(self.regimes, self.tasks, self.rounds, self.seed, **network)

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
    is timed on the round read again, since a service meets a job and a state of the cluster only once.
    """
    found = []
    solvers = {name: question.solver(name) for name in question.solvers}
    for asked in question.all_rounds():
        instance = asked.instance()
        warm = read_instance(instance)
        paths_of(warm.cluster.topology).warm()
        for name, solver in solvers.items():
            decide(solver, warm, instance, seed=asked.seed, time_limit_s=question.limits[0])
            for limit in question.limits:
                decision = decide(solver, read_instance(instance), instance, seed=asked.seed, time_limit_s=limit)
                found.append(Answer.of(asked, name, limit, decision))
                advance()
    return found


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


def row(answer: Answer, truth: Truth) -> dict[str, Any]:
    """Of ``decisions.csv``: a decision, with the seed that makes its instance, and what the exact solver knows of it:
    the optimum where that is proven, no plan's composite is above ``bound``, and whether no plan exists."""
    told = asdict(answer)
    optimum = truth.composite if truth.optimal else None
    proven = {"optimum": optimum, "bound": truth.bound, "proven_impossible": truth.impossible}
    return {**told.pop("round"), **told, **proven}
