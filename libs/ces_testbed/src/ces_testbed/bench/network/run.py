"""Run the network benchmark and keep what it found."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from ces_core.bench.drawing import require_plots
from ces_core.bench.machine import CoreTime, describe
from ces_core.bench.results import write_results
from ces_testbed.bench.ending import ended_tidily
from ces_testbed.bench.network.experiment import Question, measure
from ces_testbed.bench.network.plots import network_plots
from ces_testbed.capability import why_no_tc
from ces_testbed.errors import TestbedError


def run(question: Question, out: Path, screen: Console) -> dict[str, Any]:
    """Measure, and write ``results.json`` and the plot under ``out``. Raises TestbedError."""
    if (reason := why_no_tc()) is not None:
        raise TestbedError(f"ces bench network shapes real links: {reason}")
    require_plots()
    machine, before = describe(), CoreTime.now()
    with ended_tidily():
        found = measure(question, screen.print)
    machine["stolen"] = CoreTime.now().stolen_since(before)
    results = {"question": asdict(question), "machine": machine, **found}
    write_results(out, results)
    network_plots(results, out)
    return results
