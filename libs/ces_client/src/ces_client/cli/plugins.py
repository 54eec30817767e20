"""The command groups that other packages add to: ``ces`` itself (entry points of group ``ces.commands``) and
``ces bench`` (``ces.bench``). What they add is imported only when it is called, so that ``ces --help`` and everyday
commands stay quick; and errors end as CES's errors do.
"""

from __future__ import annotations

import ast
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from ces_client.cli.output import show_problem, wants_json
from ces_client.errors import CesError, bad_field
from ces_common.messages.api import Problem

GROUP = "ces.commands"
BENCH_GROUP = "ces.bench"
_WANTS_JSON = "ces_client.wants_json"


class PluginGroup(TyperGroup):
    """Own commands first, then those of the entry points by name."""

    entry_points: ClassVar[str]

    def list_commands(self, ctx: Any) -> list[str]:
        own = super().list_commands(ctx)
        return own + sorted(set(plugins(self.entry_points)) - set(own))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """For help texts and completion: a stand-in that knows the help line, for a command not imported yet."""
        own, others = super().get_command(ctx, cmd_name), plugins(self.entry_points)
        if own is not None or cmd_name not in others:
            return own
        return TyperCommand(cmd_name, help=help_line(others[cmd_name]))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, others = args[0], plugins(self.entry_points)
        if name in others and name not in self.commands:
            return name, load(others[name]), args[1:]
        return super().resolve_command(ctx, args)

    def all_commands(self) -> dict[str, Any]:
        """Own commands and those of the entry points, which are imported for it."""
        own, others = dict(self.commands), sorted(plugins(self.entry_points).items())
        return own | {name: load(point) for name, point in others if name not in own}


class BenchGroup(PluginGroup):
    """``ces bench``: every package brings the measurements of what it holds."""

    entry_points = BENCH_GROUP


class CesGroup(PluginGroup):
    """``ces``: where errors end."""

    entry_points = GROUP

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        ctx.meta[_WANTS_JSON] = wants_json(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        as_json = ctx.meta.get(_WANTS_JSON, False)
        try:
            return super().invoke(ctx)
        except CesError as error:
            show_problem(error.problem, as_json=as_json)
            raise typer.Exit(error.exit_code) from error
        except typer.TyperException as error:
            if not as_json:
                raise  # typer shows usage with it
            problem = Problem(type="ces:usage", title="Wrong usage", status=400, detail=error.format_message())
            show_problem(problem, as_json=True)
            raise typer.Exit(2) from error


@cache
def plugins(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def load(point: EntryPoint) -> Any:
    """The command behind an entry point: a function, or a typer.Typer with commands of its own."""
    try:
        target = point.load()
    except ImportError as error:
        package = point.dist.name if point.dist else point.module
        words = ("ces", "bench", point.name) if point.group == BENCH_GROUP else ("ces", point.name)
        raise bad_field(
            f"`{' '.join(words)}` cannot start",
            point.name,
            str(error),
            f"install all that it needs: pip install {package}",
        ) from error
    holder = typer.Typer()
    if isinstance(target, typer.Typer):
        holder.add_typer(target, name=point.name)
    else:
        holder.command(point.name)(target)
    return get_group(holder).commands[point.name]


def help_line(point: EntryPoint) -> str:
    """The first paragraph of the command's help, read from its source without running it; empty where there is none."""
    path = _source(point.module)
    if path is None:
        return ""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == point.attr:
            return _first_paragraph(ast.get_docstring(node) or "")
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == point.attr for target in targets):
                return _help_keyword(node.value)
    return ""


def _help_keyword(call: ast.Call) -> str:
    value = next((keyword.value for keyword in call.keywords if keyword.arg == "help"), None)
    return _first_paragraph(str(value.value)) if isinstance(value, ast.Constant) else ""


def _first_paragraph(text: str) -> str:
    return " ".join(text.strip().partition("\n\n")[0].split())


def _source(module: str) -> Path | None:
    """The module's file, found without importing its package."""
    top, *inner = module.split(".")
    spec = find_spec(top)
    if spec is None or not spec.submodule_search_locations:
        return Path(spec.origin) if spec is not None and spec.origin and not inner else None
    for folder in spec.submodule_search_locations:
        base = Path(folder, *inner)
        for candidate in (base.with_suffix(".py"), base / "__init__.py"):
            if candidate.is_file():
                return candidate
    return None
