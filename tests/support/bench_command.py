"""Commands of ``ces bench``, called as their users do."""

from __future__ import annotations

from collections.abc import Callable

import typer
from click.testing import Result
from typer.testing import CliRunner


def run_bench(command: Callable[..., None], *arguments: object, code: int = 0) -> Result:
    """What the command printed, with these arguments. Fails where it ends with another exit code."""
    app = typer.Typer()
    app.command()(command)
    run = CliRunner().invoke(app, [str(word) for word in arguments])
    assert run.exit_code == code, run.output + repr(run.exception)
    return run


def words_of(run: Result) -> str:
    """All that it printed, without frames and line ends."""
    return " ".join(run.output.replace("│", " ").split())
