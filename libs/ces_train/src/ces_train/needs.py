"""What training needs beyond the rest of CES, and what is said where it is missing."""

from __future__ import annotations

from importlib.util import find_spec

import typer

NEEDED = ("torch", "onnx", "onnxruntime", "tensorboardX")


def require_torch() -> None:
    """Ends the command, with the remedy, where something that training needs is not installed."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        typer.echo(f"error: training needs {', '.join(missing)}: make install-train", err=True)
        raise typer.Exit(2)
