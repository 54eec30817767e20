"""Tables and pictures of benchmarks, from the results that lie beside their pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from ces_core.bench import (
    generalise_report,
    longrun_report,
    multi_report,
    online_report,
    pareto_report,
    placement_report,
    quality_report,
    scale_report,
    thesis_report,
    warm_start_report,
)
from ces_core.bench.results import provenance
from ces_testbed.bench.network import report as network_report
from ces_testbed.bench.testbed import report as testbed_report
from ces_train import curves_report

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
REPORTS = {
    "placement": placement_report.grids,
    "scale": scale_report.grids,
    "online": online_report.grids,
    "longrun": longrun_report.grids,
    "multi": multi_report.grids,
    "thesis": thesis_report.grids,
    "quality": quality_report.grids,
    "generalise": generalise_report.grids,
    "pareto": pareto_report.grids,
    "warm-start": warm_start_report.grids,
    "curves": curves_report.grids,
    "network": network_report.grids,
    "testbed": testbed_report.grids,
}


def regions() -> dict[str, tuple[str, Callable[[], str]]]:
    """Name of the region -> its page, and what makes it."""
    return {f"{name} figures": (f"benchmarks/{name}.md", lambda name=name: figures(name)) for name in REPORTS}


def figures(name: str) -> str:
    """All tables, which command made them, and the pictures, of the benchmark and of every run of it that lies in a
    folder below; which command will, where nobody has measured yet."""
    folder = FOLDER / name
    if not folder.is_dir():
        return f"There are none yet: `ces bench {name} --out docs/benchmarks/{name}`, then `make docs`."
    runs = [folder, *(each.parent for each in sorted(folder.glob("*/results.json")))]
    return "\n\n".join(part for run in runs for part in _run(name, run))


def _run(name: str, folder: Path) -> list[str]:
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    where = folder.relative_to(FOLDER)
    pictures = [f"![{path.stem.replace('-', ' ')}]({where}/{path.name})" for path in sorted(folder.glob("*.png"))]
    parts = [provenance(results["machine"]), *(grid.as_markdown() for grid in REPORTS[name](results)), *pictures]
    return [part.strip() for part in parts]
