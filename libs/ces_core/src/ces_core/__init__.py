"""CES scheduling decisions as pure functions: the problem model, solvers, routing, bandwidth and the job queue.

The names listed here are the library's entry points. They are imported on first use, so that importing ``ces_core``
itself loads no solver.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ces_core.checker import check
    from ces_core.model.instance import read_instance
    from ces_core.model.parts import Flow, Link, Node, Task
    from ces_core.model.plan import Result
    from ces_core.model.problem import Cluster, Problem
    from ces_core.registry import get_solver

    __version__: str

__all__ = ["Cluster", "Flow", "Link", "Node", "Problem", "Result", "Task", "check", "get_solver", "read_instance"]

_HOMES = {
    "ces_core.checker": ("check",),
    "ces_core.model.instance": ("read_instance",),
    "ces_core.model.plan": ("Result",),
    "ces_core.model.problem": ("Cluster", "Flow", "Link", "Node", "Problem", "Task"),
    "ces_core.registry": ("get_solver",),
}
_MODULE = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("ces-core")
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULE[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
