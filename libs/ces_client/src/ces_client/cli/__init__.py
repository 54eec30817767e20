"""The ``ces`` command (typer, rich)."""

from ces_client.cli.app import app, main

__all__ = ["app", "main"]
