"""The command groups that other packages add to: ``ces`` itself (entry points of group ``ces.commands``) and
``ces bench`` (``ces.bench``).

A package's command is imported only when it is called, so ``ces --help`` and everyday commands stay quick, and a broken
package breaks its own command alone. Errors end as CES's errors do.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from ces_client.cli.output import show_problem, wants_json
from ces_client.errors import BadInput, CesError, bad_field
from ces_common.messages.api import Problem

GROUP = "ces.commands"
BENCH_GROUP = "ces.bench"
CALLED_ELSEWHERE = {
    "apply": "submit FILE",
    "create": "submit FILE",
    "delete": "cancel JOB",
    "info": "doctor",
    "jobs": "get jobs",
    "kill": "cancel JOB",
    "links": "get links",
    "nodes": "get nodes",
    "ps": "get jobs",
    "queue": "get queue",
    "rm": "cancel JOB",
    "run": "submit FILE",
    "start": "up",
    "status": "describe job JOB",
    "stop": "cancel JOB",
    "top": "get nodes --watch",
}
"""What other tools call it -> how it is called here."""
_WANTS_JSON = "ces_client.wants_json"


class PluginGroup(TyperGroup):
    """Own commands first, then those of the entry points by name."""

    entry_points: ClassVar[str]

    def list_commands(self, ctx: Any) -> list[str]:
        own = super().list_commands(ctx)
        return own + sorted(set(plugins(self.entry_points)) - set(own))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """For help texts and completion: a stand-in with the help line, for a command that is not imported yet."""
        own, others = super().get_command(ctx, cmd_name), plugins(self.entry_points)
        if own is not None or cmd_name not in others:
            return own
        return TyperCommand(cmd_name, help=help_line(others[cmd_name]))

    def load(self, point: EntryPoint) -> Any:
        """The command behind an entry point. Raises BadInput where it is broken."""
        return command_of(point)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, others = args[0], plugins(self.entry_points)
        if name in others and name not in self.commands:
            return name, self.load(others[name]), args[1:]
        return super().resolve_command(ctx, args)

    def all_commands(self) -> dict[str, Any]:
        """Own commands and those of the entry points, which are imported for it; without broken ones."""
        found = dict(self.commands)
        for name, point in sorted(plugins(self.entry_points).items()):
            if name not in found:
                with suppress(BadInput):
                    found[name] = self.load(point)
        return found


class CesGroup(PluginGroup):
    """``ces``: where errors end."""

    entry_points = GROUP

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in CALLED_ELSEWHERE and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"No such command {args[0]!r}. It is `ces {CALLED_ELSEWHERE[args[0]]}`.")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        ctx.meta[_WANTS_JSON] = wants_json(args)
        return super().parse_args(ctx, cluster_first(args))

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


def cluster_first(arguments: Sequence[str]) -> list[str]:
    """A command line with its ``--cluster NAME`` moved to the front, so that it may stand behind the command as well.
    What follows ``--`` stays as it is."""
    words = list(arguments)
    end = words.index("--") if "--" in words else len(words)
    for at, word in enumerate(words[:end]):
        if word == "--cluster" or word.startswith("--cluster="):
            length = 2 if word == "--cluster" else 1
            return [*words[at : at + length], *words[:at], *words[at + length :]]
    return words


@cache
def plugins(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name. Of two with one name the first counts, as for imports."""
    return {point.name: point for point in reversed(tuple(entry_points(group=group)))}


def command_of(point: EntryPoint) -> Any:
    """The command behind an entry point: a function, or a typer.Typer with commands of its own. Raises BadInput,
    whatever another package's import ends with."""
    try:
        target = point.load()
        if isinstance(target, type):
            raise TypeError(f"{point.value} names a class, not a function or a typer.Typer")
        holder = typer.Typer()
        if isinstance(target, typer.Typer):
            holder.add_typer(target, name=point.name)
        else:
            holder.command(point.name)(target)
        return get_group(holder).commands[point.name]
    except (Exception, SystemExit) as error:
        raise _broken(point, error) from error


def _broken(point: EntryPoint, cause: BaseException) -> BadInput:
    """For people: which command cannot start, why, and what to do."""
    words = f"bench {point.name}" if point.group == BENCH_GROUP else point.name
    package = point.dist.name if point.dist else point.module
    if isinstance(cause, ImportError):
        problem, remedy = str(cause), f"install all that it needs: pip install {package}"
    else:
        problem, remedy = f"broken: {type(cause).__name__}: {cause}", f"update or remove the package {package}"
    return bad_field(f"`ces {words}` cannot start", point.name, problem, remedy)


def help_line(point: EntryPoint) -> str:
    """The first paragraph of the command's help, read from its source without running it; ``broken: REASON`` where the
    source cannot be read, and empty where it has no help."""
    try:
        path = _source(point.module)
        return _help_in(ast.parse(path.read_text(encoding="utf-8")), point.attr) if path is not None else ""
    except SyntaxError as error:
        return f"broken: {error.msg} in line {error.lineno} of {point.module}"
    except (OSError, ValueError, ImportError) as error:
        return f"broken: {error}"


def _help_in(source: ast.Module, name: str) -> str:
    for node in source.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return _first_paragraph(ast.get_docstring(node) or "")
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return _help_keyword(node.value)
    return ""


def _help_keyword(call: ast.Call) -> str:
    value = next((keyword.value for keyword in call.keywords if keyword.arg == "help"), None)
    return _first_paragraph(str(value.value)) if isinstance(value, ast.Constant) else ""


def _first_paragraph(text: str) -> str:
    return " ".join(text.strip().partition("\n\n")[0].split())


def _source(module: str) -> Path | None:
    """The module's file, found without importing its package; None for a module that has no source. Raises ImportError
    where nothing of the name is installed."""
    top, *inner = module.split(".")
    spec = find_spec(top)
    if spec is None:
        raise ImportError(f"no module is named {top}")
    if not spec.submodule_search_locations:
        return Path(spec.origin) if spec.origin and not inner else None
    for folder in spec.submodule_search_locations:
        base = Path(folder, *inner)
        for candidate in (base.with_suffix(".py"), base / "__init__.py"):
            if candidate.is_file():
                return candidate
    return None
