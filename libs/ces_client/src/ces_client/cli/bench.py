"""``ces bench``: the measurements that packages bring, each with ``--quick`` where it can be made small."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from typing import Annotated, Any

import typer
from typer.main import get_command

from ces_client.cli.plugins import BENCH_GROUP, PluginGroup

SMALL: Mapping[str, Any] = {
    "rounds": 2, "repeats": 1, "seeds": 1, "jobs": 20, "changes": 3, "seconds": 2, "anytime": "", "exact": False,
}  # fmt: skip
"""What ``--quick`` gives options of these names, whichever measurement has them."""
FIRST_ONLY = frozenset({"loads", "regime", "nodes", "time_limits", "cases"})
"""Options that list values: ``--quick`` takes the first."""


class BenchGroup(PluginGroup):
    """``ces bench``: every package adds the measurements of what it holds."""

    entry_points = BENCH_GROUP

    def load(self, point: EntryPoint) -> Any:
        command = super().load(point)
        if small_settings(command):
            command.params.append(_quick_option())
        return command


def small_settings(command: Any) -> dict[str, object]:
    """What ``--quick`` sets, by option: what makes the measurement small, and a folder of its own for the results.
    Empty where nothing makes it small."""
    found: dict[str, object] = {}
    for option in command.params:
        if option.name in SMALL and option.default != SMALL[option.name]:
            small, least = SMALL[option.name], getattr(option, "min", None)
            found[option.name] = small if least is None else max(small, least)
        elif option.name in FIRST_ONLY and isinstance(option.default, str) and "," in option.default:
            found[option.name] = option.default.partition(",")[0]
    out = next((option.default for option in command.params if option.name == "out"), None)
    return found | {"out": f"{out}-quick"} if found and out is not None else found


def _make_small(context: typer.Context, value: bool) -> None:
    if value:
        context.default_map = small_settings(context.command)


def _quick_option() -> Any:
    def holder(
        quick: Annotated[
            bool,
            typer.Option(
                "--quick", is_eager=True, expose_value=False, callback=_make_small,
                help="a small measurement that shows how it works; options that are given still count",
            ),
        ] = False,
    ) -> None: ...  # fmt: skip

    app = typer.Typer(add_completion=False)
    app.command()(holder)
    return next(option for option in get_command(app).params if option.name == "quick")
