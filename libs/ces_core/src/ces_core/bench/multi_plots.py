"""The benchmark of queues as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ces_core.bench.drawing import Column, dots, save
from ces_core.bench.multi_report import describe

COLUMNS = (
    Column("wait_s", "mean wait, s"),
    Column("wait_p99_s", "p99 wait, s"),
    Column("starved", "starved jobs"),
    Column("satisfaction", "satisfaction"),
    Column("cpu", "CPU in use, %", 100.0),
    Column("fairness", "fairness (Jain)"),
)


def draw(results: Mapping[str, Any], out: Path) -> list[str]:
    """One picture for each regime under ``out``; gives their names."""
    names = []
    for regime, loads in results["regimes"].items():
        rows = {f"load {load}": told["policies"] for load, told in loads.items()}
        last = list(rows.values())[-1]
        order = sorted(last, key=lambda name: (last[name]["wait_s"]["mean"], name))
        figure = dots(rows, COLUMNS, order)
        figure.supxlabel(
            f"regime {regime}; {describe(results['question'])}; bars: 95 % confidence", fontsize=8, color="#444444"
        )
        name = f"{regime}.png"
        save(figure, out / name)
        names.append(name)
    return names
