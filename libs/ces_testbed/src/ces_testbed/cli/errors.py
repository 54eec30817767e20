"""The error with which commands about clusters and hosts end."""

from __future__ import annotations

from pathlib import Path

from ces_client.errors import CesError
from ces_common.messages.api import Problem


class Failed(CesError):
    """A cluster or testbed that could not be started, was not found, or could not be removed. ``logs``: the folder to
    point the user to."""

    exit_code = 1

    def __init__(self, title: str, detail: str, logs: Path | None = None) -> None:
        errors = [{"field": "logs", "problem": str(logs)}] if logs is not None else []
        super().__init__(Problem(type="ces:cluster", title=title, status=500, detail=detail, errors=errors))
