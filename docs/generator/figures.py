"""Tables and pictures of benchmarks, from the results that lie beside their pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from ces_experiments.amounts import report as amounts_report
from ces_experiments.applications import report as applications_report
from ces_experiments.common.report import Report
from ces_experiments.common.results import provenance
from ces_experiments.dashboard import report as dashboard_report
from ces_experiments.gpus import clusters_report, fgd_report, learning_report
from ces_experiments.gpus import mix_report as gpu_mix_report
from ces_experiments.latency import energy_report
from ces_experiments.latency import report as latency_report
from ces_experiments.learned import (
    curves_report,
    encoders_report,
    generalise_report,
    long_ppo_report,
    pareto_report,
    quality_report,
    thesis_report,
    warm_start_report,
)
from ces_experiments.malleable import edge_report, elastic_report, speeds
from ces_experiments.malleable.cpu import report as cpu_report
from ces_experiments.malleable.mix import report as mix_report
from ces_experiments.malleable.tides import report as tides_report
from ces_experiments.measure import report as measure_report
from ces_experiments.network import report as network_report
from ces_experiments.placement import report, scale_report
from ces_experiments.queue import longrun_report, multi_report, online_report
from ces_experiments.regions import live_report as regions_live_report
from ces_experiments.regions import report as regions_report
from ces_experiments.testbed import report as testbed_report
from ces_experiments.users import report as users_report

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
REPORTS: dict[str, Report] = {
    "placement": report.REPORT,
    "scale": scale_report.REPORT,
    "online": online_report.REPORT,
    "longrun": longrun_report.REPORT,
    "multi": multi_report.REPORT,
    "thesis": thesis_report.REPORT,
    "quality": quality_report.REPORT,
    "generalise": generalise_report.REPORT,
    "pareto": pareto_report.REPORT,
    "warm-start": warm_start_report.REPORT,
    "curves": curves_report.REPORT,
    "encoders": encoders_report.REPORT,
    "long-ppo": long_ppo_report.REPORT,
    "amounts": amounts_report.REPORT,
    "latency": latency_report.REPORT,
    "energy": energy_report.REPORT,
    "users": users_report.REPORT,
    "applications": applications_report.REPORT,
    "gpus": fgd_report.REPORT,
    "gpu-clusters": clusters_report.REPORT,
    "gpu-mix": gpu_mix_report.REPORT,
    "gpu-learning": learning_report.REPORT,
    "network": network_report.REPORT,
    "measure": measure_report.REPORT,
    "testbed": testbed_report.REPORT,
    "regions": regions_report.REPORT,
    "regions-live": regions_live_report.REPORT,
    "malleable": mix_report.REPORT,
    "cpu": cpu_report.REPORT,
    "tides": tides_report.REPORT,
    "elastic": elastic_report.REPORT,
    "elastic-edge": edge_report.REPORT,
    "elastic-speeds": speeds.REPORT,
    "dashboard": dashboard_report.REPORT,
}
PAGES = {
    "gpu-learning": "gpu-clusters",
    "elastic-edge": "elastic",
    "elastic-speeds": "elastic",
    "regions-live": "regions",
}
"""Where a benchmark has no page of its own name."""


def draw_pictures() -> list[Path]:
    """Draws every picture again from the results beside it, where a page's names or a plot's style have changed."""
    for name, told in REPORTS.items():
        if not (FOLDER / name / "results.json").is_file():
            continue
        told.draw(json.loads((FOLDER / name / "results.json").read_text(encoding="utf-8")), FOLDER / name)
    return sorted(picture for name in REPORTS for picture in (FOLDER / name).glob("*.png"))


def regions() -> dict[str, tuple[str, Callable[[], str]]]:
    """Name of the region -> its page, and what makes it."""
    return {
        f"{name} figures": (f"benchmarks/{PAGES.get(name, name)}.md", lambda name=name: figures(name))
        for name in REPORTS
    }


def figures(name: str) -> str:
    """All tables, which command made them, and the pictures, of the benchmark and of every run of it that lies in a
    folder below; which command will, where nobody has measured yet."""
    folder = FOLDER / name
    if not (folder / "results.json").is_file():
        return f"There are none yet: `ces bench {name}` makes them."
    runs = [folder, *(each.parent for each in sorted(folder.glob("*/results.json")))]
    return "\n\n".join(part for run in runs for part in _run(name, run))


def _run(name: str, folder: Path) -> list[str]:
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    where = folder.relative_to(FOLDER)
    pictures = [f"![{path.stem.replace('-', ' ')}]({where}/{path.name})" for path in sorted(folder.glob("*.png"))]
    parts = [provenance(results["machine"]), *(grid.as_markdown() for grid in REPORTS[name].tables(results)), *pictures]
    return [part.strip() for part in parts]
