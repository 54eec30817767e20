"""The warm-start benchmark: how much better a search is for what it begins with, at equal time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rich.progress import Progress

from ces_core.model.instance import read_instance
from ces_core.model.problem import Problem
from ces_core.registry import get_solver
from ces_core.warm_up import warm_up
from ces_experiments.common.console import counted
from ces_experiments.common.report import Found
from ces_experiments.common.spread import share, spread
from ces_experiments.placement.comparison import Answer, best_known
from ces_experiments.placement.experiment import waited
from ces_sim.decision import decide
from ces_sim.rounds import Round, rounds

PATHS = ("new", "known")
"""Whether the network's paths are yet to be found, as in the first decision on it, or known from that one."""


@dataclass(frozen=True)
class Case:
    """Jobs of these numbers of tasks on random networks."""

    nodes: int
    tasks: tuple[int, ...]

    @property
    def label(self) -> str:
        low, high = self.tasks[0], self.tasks[-1]
        return f"{self.nodes:,} nodes, {low if low == high else f'{low}-{high}'} tasks"


@dataclass(frozen=True)
class Question:
    """What is compared: ``rounds`` jobs for every case, regime and number of tasks, under every limit (seconds). In the
    end both get ``long_s`` for every job, so that it is known what there is to find."""

    cases: tuple[Case, ...]
    regimes: tuple[str, ...]
    rounds: int
    seed: int
    base: str
    other: str
    limits: tuple[float, ...]
    long_s: float

    @staticmethod
    def of(*, cases: Sequence[tuple[int, tuple[int, ...]]], **values: Any) -> Question:
        return Question(tuple(Case(nodes, tasks) for nodes, tasks in cases), **values)

    @property
    def solvers(self) -> tuple[str, str]:
        return self.base, self.other

    def all_rounds(self) -> Iterator[Round]:
        for case in self.cases:
            yield from rounds(self.regimes, case.tasks, self.rounds, self.seed, nodes=case.nodes)


@dataclass(frozen=True)
class Taken:
    """An answer, and whether the paths were new or known; None where that is not what was asked about."""

    answer: Answer
    paths: str | None


def measure(question: Question, progress: Progress) -> Found:
    """Both solvers' answers, the other one first on every second job. Raises BadDecisionError."""
    for name in question.solvers:
        warm_up(get_solver(name))
    found, every = [], list(question.all_rounds())
    advance = counted(progress, "jobs", len(every))
    for number, asked in enumerate(every):
        instance = asked.instance()
        problem = read_instance(instance)
        for name in question.solvers if number % 2 else question.solvers[::-1]:
            for posed, limit_s, paths in _in_turn(question, problem):
                decision = decide(get_solver(name), posed, instance, seed=asked.seed, time_limit_s=limit_s)
                found.append(Taken(Answer.of(asked, name, limit_s, decision), paths))
        advance()
    return Found(summarise(question, found), machine=waited([each.answer for each in found]))


def _in_turn(question: Question, problem: Problem) -> Iterator[tuple[Problem, float, str | None]]:
    """The problem, the limit and the paths of one decision after the other."""
    for limit_s in question.limits:
        fresh = _on_new_network(problem)
        yield fresh, limit_s, "new"
        yield replace(fresh), limit_s, "known"
    yield _on_new_network(problem), question.long_s, None


def _on_new_network(problem: Problem) -> Problem:
    """The same on a network of which no path is known."""
    cluster = problem.cluster
    return replace(problem, cluster=replace(cluster, topology=replace(cluster.topology)))


def summarise(question: Question, taken: Sequence[Taken]) -> dict[str, Any]:
    """Case -> regime -> limit in ms -> new or known -> both solvers' figures, and by how much the other's composite is
    above that of the base. Pure."""
    best = best_known((each.answer for each in taken), {})

    def of(case: Case, regime: str, limit_s: float, paths: str) -> list[Answer]:
        return [
            each.answer
            for each in taken
            if (each.answer.limit_s, each.paths) == (limit_s, paths)
            and (each.answer.round.regime, each.answer.round.nodes) == (regime, case.nodes)
            and each.answer.round.tasks in case.tasks
        ]

    return {
        "question": asdict(question),
        "cases": {
            case.label: {
                regime: {
                    f"{limit_s * 1e3:g}": {
                        paths: _cell(question, of(case, regime, limit_s, paths), best) for paths in PATHS
                    }
                    for limit_s in question.limits
                }
                for regime in question.regimes
            }
            for case in question.cases
        },
    }


def _cell(question: Question, answers: Sequence[Answer], best: Mapping[Round, float]) -> dict[str, Any]:
    placed: dict[str, dict[Round, float]] = {
        name: {each.round: each.composite for each in answers if each.solver == name and each.composite is not None}
        for name in question.solvers
    }
    base, other = (placed[name] for name in question.solvers)
    both = [asked for asked in base if asked in other]
    jobs = len({each.round for each in answers})
    return {
        "gain": spread(other[asked] - base[asked] for asked in both),
        "solvers": {
            name: {
                "placed": share(len(placed[name]), jobs),
                "regret": spread(best[asked] - placed[name][asked] for asked in both),
                "wall_ms": spread(each.wall_ms for each in answers if each.solver == name),
                "cpu_ms": spread(each.cpu_ms for each in answers if each.solver == name),
            }
            for name in question.solvers
        },
    }
