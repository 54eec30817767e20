"""What was asked, in words: parts of titles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def network(question: Mapping[str, Any]) -> str:
    """The topology and how many nodes were asked for."""
    topology, nodes = Path(question["topology"]).stem, question["nodes"]
    if nodes is None:
        return f"{topology} network"
    degree = question.get("degree")
    return f"{topology} network of {nodes} nodes" + (f" of degree {degree:g}" if degree else "")


def limit(question: Mapping[str, Any]) -> str:
    """How long a decision may take."""
    seconds = question["time_limit_s"]
    return f"{f'{seconds * 1e3:g} ms' if seconds else 'no limit'} for each decision"


def jobs(question: Mapping[str, Any]) -> str:
    """How many, and of which trace, which may hold fewer."""
    return f"up to {question['jobs']} jobs of {question['trace']}" if question["trace"] else f"{question['jobs']} jobs"


def times(repeats: int) -> str:
    """How often something is done."""
    return "once" if repeats == 1 else f"{repeats} times"


def load(value: float | None) -> str:
    """An offered load; None: that of a trace's own times."""
    return "as timed" if value is None else f"{value:g}"


def offered(load: str) -> str:
    """The same for a title."""
    return "Arrivals as timed" if load == "as timed" else f"Offered load {load}"


def span(sizes: Sequence[int]) -> str:
    """Numbers of tasks."""
    return f"{sizes[0]}-{sizes[-1]}" if len(sizes) > 1 else f"{sizes[0]}"
