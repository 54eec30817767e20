"""The small runs that pages of docs/benchmarks state figures of: a change of decisions cannot pass unnoticed."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ces_experiments.placement.commands import placement
from ces_experiments.queue.commands import multi

PAGES = Path(__file__).resolve().parents[3] / "docs" / "benchmarks"
HEADING = "## A small run that is checked"


def of_policies(regimes: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    (loads,) = regimes.values()
    (told,) = loads.values()
    for name, found in sorted(told["policies"].items(), key=lambda each: each[1]["wait_s"]["mean"]):
        yield name, f"{found['wait_s']['mean']:.1f}", f"{found['satisfaction']['mean']:.4f}"


def of_solvers(regimes: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for regime, told in regimes.items():
        for solver, parts in told["solvers"].items():
            found = parts["all_tasks"]
            figures = f"{found['composite_or_0']['mean']:.4f}", f"{found['regret']['mean']:.5f}"
            yield f"{regime}, {solver}", f"{100 * found['placed']['mean']:.1f}", *figures


@pytest.mark.parametrize(
    ("page", "command", "rows"), [("multi.md", multi, of_policies), ("placement.md", placement, of_solvers)]
)
def test_a_small_run_has_the_figures_of_its_page(
    page: str, command: Any, rows: Callable[[Any], Iterator[tuple[str, ...]]], tmp_path: Path
) -> None:
    section = (PAGES / page).read_text().partition(HEADING)[2].partition("\n## ")[0]
    asked = re.search(r"^ces bench \w+ (.*)$", section, re.MULTILINE)
    assert asked is not None
    app = typer.Typer()
    app.command()(command)
    run = CliRunner().invoke(app, [*shlex.split(asked[1]), "--out", str(tmp_path)])
    assert run.exit_code == 0, run.output + repr(run.exception)
    stated = re.findall(r"^\| (.*) \|$", section, re.MULTILINE)[1:]
    found = rows(json.loads((tmp_path / "results.json").read_text())["regimes"])
    assert stated == [" | ".join(row) for row in found], "put these on the page, and say there what is older"
