"""What the benchmarks of single jobs have in common, from the first decision to the files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from ces_core.bench.machine import describe
from ces_core.bench.placement import Answer, Asked, ContradictionError, best_known, compare, write_answers
from ces_core.bench.results import Grid, write_results, write_tables
from ces_core.bench.shell import fail, measuring, show
from ces_core.bench.truth import Truth, find_truths
from ces_core.simulator.rounds import Round

Q = TypeVar("Q", bound=Asked)


@dataclass(frozen=True)
class Experiment(Generic[Q]):
    """``summarise`` makes results of a question, its answers, the truths and the best known; ``draw`` writes pictures
    of them into a folder and names them."""

    name: str
    summarise: Callable[[Q, Sequence[Answer], Mapping[Round, Truth], Mapping[Round, float]], dict[str, Any]]
    grids: Callable[[Mapping[str, Any]], list[Grid]]
    draw: Callable[[Mapping[str, Any], Path], list[str]]


def carry_out(experiment: Experiment[Q], question: Q, *, proof_s: float | None, plots: bool, out: Path) -> None:
    """Ask, prove, sum up, write and show. ``proof_s``: seconds for the proof of a round, after everything timed is
    over; None: nothing is proven."""
    asked = list(question.all_rounds())
    with measuring(out, plots) as progress:
        machine = describe()
        bar = progress.add_task("decisions", total=len(asked) * len(question.solvers) * len(question.limits))
        answers = compare(question, lambda: progress.advance(bar))
        machine["wall_over_cpu"] = sum(each.wall_ms for each in answers) / sum(each.cpu_ms for each in answers)
        truths = {}
        if proof_s is not None:
            bar = progress.add_task("proofs", total=len(asked))
            truths = find_truths(asked, proof_s, lambda: progress.advance(bar))
        try:
            best = best_known(answers, truths)
        except ContradictionError as error:
            fail(str(error))
        found = experiment.summarise(question, answers, truths, best)
        results = {"benchmark": experiment.name, "machine": machine} | found
        tables = experiment.grids(results)
        write_results(out, results)
        write_tables(out, machine, tables)
        write_answers(out, answers)
        pictures = experiment.draw(results, out) if plots else []
    show(tables, out, ["results.json", "tables.md", "decisions.csv", *pictures])
