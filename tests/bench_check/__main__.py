"""The command line: ``python -m bench_check COMMIT``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench_check.benchmarks import BENCHMARKS, Benchmark, Figure, Results
from bench_check.pairs import Pair, row
from bench_check.trees import KEPT, TREE, CheckError, installed, measured


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 2 where there is nothing to compare with."""
    names = [benchmark.name for benchmark in BENCHMARKS]
    parser = argparse.ArgumentParser(prog="bench_check", description="did a change make anything slower?")
    parser.add_argument("commit", help="the former one")
    parser.add_argument("--rounds", type=int, default=3, help="pairs of runs of each benchmark (default: 3)")
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="these benchmarks")
    asked = parser.parse_args(arguments)
    if asked.rounds < 1:
        parser.error("--rounds: 1 at least")
    try:
        former = installed(asked.commit)
    except CheckError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for benchmark in BENCHMARKS:
        if benchmark.name not in asked.only:
            continue
        if benchmark.needs_root and os.geteuid():
            print(f"{benchmark.name}: left out, it needs root", flush=True)
            continue
        show(benchmark, asked.rounds, paired(former, benchmark, asked.rounds), asked.commit)
    return 0


def paired(former: Path, benchmark: Benchmark, rounds: int) -> list[tuple[Results | None, Results | None]]:
    """Runs of both trees in turn, first the one and then the other in every second round."""
    found = []
    for number in range(rounds):
        print(f"{benchmark.name}: pair {number + 1} of {rounds}", flush=True)
        sides = [(former, "former"), (TREE, "present")]
        pair: dict[str, Results | None] = {}
        for tree, side in reversed(sides) if number % 2 else sides:
            out = KEPT / "results" / benchmark.name / f"{side}-{number + 1}"
            pair[side] = measured(tree, benchmark, out)
            if pair[side] is None:
                print(f"  the {side} one gave no results: see {out / 'output.log'}", flush=True)
        found.append((pair["former"], pair["present"]))
    return found


def show(
    benchmark: Benchmark, rounds: int, found: Sequence[tuple[Results | None, Results | None]], commit: str
) -> None:
    table = Table(title=f"ces bench {' '.join(benchmark.command)}; pairs: {rounds}", title_justify="left")
    for column in ("figure", commit[:12], "this tree", "ratio", "of the pairs", ""):
        table.add_column(column, justify="left" if column in ("figure", "") else "right")
    for figure in benchmark.figures:
        table.add_row(*row(figure.name, [_values(figure, pair) for pair in found], figure.more))
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def _values(figure: Figure, pair: tuple[Results | None, Results | None]) -> Pair:
    before, now = (_value(figure, results) for results in pair)
    return before, now


def _value(figure: Figure, results: Results | None) -> float | None:
    if results is None:
        return None
    try:
        return figure.read(results)
    except (KeyError, TypeError):
        return None


if __name__ == "__main__":
    sys.exit(main())
