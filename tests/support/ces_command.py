"""The ``ces`` command, called as a user calls it."""

from __future__ import annotations

from typer.testing import CliRunner

from ces_client.cli import app


def ces(*arguments: object, code: int = 0, **more):
    result = CliRunner().invoke(app, [str(word) for word in arguments], **more)
    assert result.exit_code == code, result.output + repr(result.exception)
    return result
