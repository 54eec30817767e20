"""What the benchmarks of single jobs have in common, from the first decision to what is told of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from rich.progress import Progress

from ces_experiments.common.command import Experiment
from ces_experiments.common.console import counted
from ces_experiments.common.report import Found, Report
from ces_experiments.placement.comparison import Answer, Asked, best_known, compare, row
from ces_experiments.placement.optima import Truth, find_truths
from ces_sim.rounds import Round

Q = TypeVar("Q", bound=Asked)
Summarise = Callable[[Q, Sequence[Answer], Mapping[Round, Truth], Mapping[Round, float]], dict[str, Any]]


def on_single_jobs(question: Callable[..., Any], summarise: Summarise[Q], report: Report) -> Experiment:
    """``summarise`` makes results of a question, its answers, the truths and the best known."""

    def measure(asked: Q, progress: Progress) -> Found:
        rounds = list(asked.all_rounds())
        decisions = len(rounds) * len(asked.solvers) * len(asked.limits)
        answers = compare(asked, counted(progress, "decisions", decisions))
        truths = {}
        if asked.proof_s is not None:  # after everything timed is over
            truths = find_truths(rounds, asked.proof_s, counted(progress, "proofs", len(rounds)))
        found = summarise(asked, answers, truths, best_known(answers, truths))
        rows = [row(answer, truths.get(answer.round, Truth())) for answer in answers]
        return Found(found, machine=waited(answers), raw={"decisions.csv": rows})

    return Experiment(question, measure, report)


def waited(answers: Sequence[Answer]) -> dict[str, float]:
    """How much longer decisions took than they computed: more than once where something else ran."""
    return {"wall_over_cpu": sum(each.wall_ms for each in answers) / sum(each.cpu_ms for each in answers)}
