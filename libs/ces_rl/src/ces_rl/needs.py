"""torch where it is installed, and what is said where it is not. `ces train --help` works without."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    import torch
else:
    try:
        import torch
    except ModuleNotFoundError:
        torch = None

__all__ = ["require_torch", "torch"]

NEEDED = ("torch", "onnx", "onnxruntime")


def require_torch() -> None:
    """Ends the command, with the remedy, where something that training needs is not installed."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        typer.echo(f"error: training needs {', '.join(missing)}: make install-train", err=True)
        raise typer.Exit(2)
