"""The benchmark of queues as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ces_core.bench.drawing import Column, dots, save
from ces_core.bench.multi import MULTI
from ces_core.bench.multi_report import compared, describe, sparing

COLUMNS = (
    Column("wait_s", "mean wait, s"),
    Column("wait_p99_s", "p99 wait, s"),
    Column("wait_max_s", "longest wait, s"),
    Column("satisfaction", "satisfaction"),
    Column("cpu", "CPU in use, %", 100.0),
    Column("fairness", "fairness (Jain)"),
)


def draw(results: Mapping[str, Any], out: Path) -> list[str]:
    """For each regime one picture of the policies at all loads, and two at the highest: of those that leave room, and
    of the ablations. Under ``out``; gives their names."""
    names = []
    for regime, loads in results["regimes"].items():
        rows = {f"load {load}": told["policies"] for load, told in loads.items()}
        most, last = list(rows.items())[-1]
        parts = [name for name in last if name not in {*compared(last), *sparing(last)}]
        for name, shown, lines in (
            (f"{regime}.png", rows, [MULTI, *compared(last)]),
            (f"{regime}-sparing.png", {most: last}, [MULTI, *sparing(last)] if sparing(last) else []),
            (f"{regime}-ablations.png", {most: last}, parts),
        ):
            order = sorted(set(lines) & set(last), key=lambda line: (last[line]["wait_s"]["mean"], line))
            if not order:
                continue
            figure = dots(shown, COLUMNS, order)
            figure.supxlabel(
                f"regime {regime}; {describe(results['question'])}; bars: 95 % confidence", fontsize=8, color="#444444"
            )
            save(figure, out / name)
            names.append(name)
    return names
