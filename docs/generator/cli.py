"""The ``ces`` command: its tree, and a page about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import EnumType
from functools import cache
from typing import Any

from typer.main import get_command

from ces_client.cli.app import app
from generator.markdown import code, table

HEAD = """# The `ces` command

Generated from the command itself by `make docs`; do not edit. Every command takes `--help`; `ces --version` prints the
version. With `-o json` the answer, or the error, is JSON on standard output. Exit status: 0 done; 1 the job failed, or
a cluster could not be started or removed, or a node not be installed; 2 bad input, refused, unreachable, or no place
for the job; 130 interrupted or detached by Ctrl-C.

Which manager is meant: the one that `--cluster NAME` names, anywhere on the command line; else `CES_URL` and
`CES_TOKEN`; else the cluster in use. `ces up` and `ces login` record clusters in `~/.config/ces/context.json`, or in
the file that `CES_CONTEXT` names; `ces clusters` lists them, `ces use NAME` chooses one.
"""


@dataclass(frozen=True)
class Command:
    words: tuple[str, ...]
    command: Any

    @property
    def options(self) -> list[Any]:
        return [each for each in self.command.params if each.param_type_name == "option" and each.name != "help"]

    @property
    def arguments(self) -> list[Any]:
        return [each for each in self.command.params if each.param_type_name == "argument"]


@cache
def tree() -> dict[str, Any]:
    """The top-level commands, those of other packages included."""
    return members(get_command(app)) or {}


def members(command: Any) -> dict[str, Any] | None:
    """What a group holds, with what other packages add to it; None for a command that is no group."""
    every = getattr(command, "all_commands", None)
    return every() if every else getattr(command, "commands", None)


def commands() -> list[Command]:
    """Every command that can be called, with its words behind ``ces``."""
    return [found for name, command in tree().items() for found in _walk((name,), command)]


def _walk(words: tuple[str, ...], command: Any) -> Iterator[Command]:
    inner = members(command)
    if inner is None:
        yield Command(words, command)
        return
    for name, each in inner.items():
        yield from _walk((*words, name), each)


def page() -> str:
    return "\n".join([HEAD, *(_section(command) for command in commands())])


def _section(command: Command) -> str:
    words = " ".join(("ces", *command.words))
    usage = " ".join([words, *(_metavar(each) for each in command.arguments)])
    text = " ".join((command.command.help or "").split())
    parts = [f"## `{words}`\n", f"{text}\n", f"```text\n{usage}{' [OPTIONS]' if command.options else ''}\n```\n"]
    rows = [(code(_metavar(each)), each.help or "") for each in command.arguments]
    rows += [(_names(each), _about(each)) for each in command.options]
    return "\n".join([*parts, table(("", ""), rows) + "\n"] if rows else parts)


def _metavar(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _names(option: Any) -> str:
    return ", ".join(code(name) for name in (*option.opts, *option.secondary_opts))


def _about(option: Any) -> str:
    """Help text, values and default."""
    kind = option.type_descriptor.annotation
    said = [option.help or ""]
    if isinstance(kind, EnumType):
        said.append(f"one of {', '.join(code(each.value) for each in kind)}")
    default = getattr(option.default, "value", option.default)
    if default not in (None, False, ()) and not callable(default):
        said.append(f"default {code(default)}")
    if option.envvar:
        said.append(f"environment {code(option.envvar)}")
    return "; ".join(part for part in said if part)
