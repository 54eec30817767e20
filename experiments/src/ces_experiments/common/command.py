"""From an experiment to its command under ``ces bench``: the options are data, and what follows is the same for all.

What measures is imported only when the command is called, so that help and a wrong option are quick.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any

import typer
from rich.progress import Progress

from ces_experiments.common.console import fail, measuring
from ces_experiments.common.machine import CoreTime, describe
from ces_experiments.common.report import Found, Report
from ces_experiments.common.results import write_results


@dataclass(frozen=True)
class Option:
    """An option of a command. ``usual``: what holds where it is left out. ``of``: what the question calls it.
    ``read``: from the option's flag and what was written behind it to what the question holds; raises
    typer.BadParameter. ``flags``: where they do not follow from the name. ``more``: what else typer.Option takes."""

    name: str
    kind: Any
    usual: Any
    help: str
    of: str = ""
    read: Callable[[str, Any], Any] = lambda flag, written: written
    flags: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, usual: Any, help: str = "") -> Option:
        """This option with another default, or another help text."""
        return replace(self, usual=usual, help=help or self.help)

    def named(self, name: str, help: str) -> Option:
        """An option of another name that is read in the same way."""
        return replace(self, name=name, help=help)

    @property
    def parameter(self) -> inspect.Parameter:
        """As typer reads it off a function."""
        kind: Any = Annotated[self.kind, typer.Option(*self.flags, help=self.help, **self.more)]
        return inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY, default=self.usual, annotation=kind)

    def value(self, written: Any) -> Any:
        return self.read(f"--{self.name.replace('_', '-')}", written)


PLOTS = Option("plots", bool, True, "draw them; needs matplotlib", flags=("--plots/--no-plots",))
ON = {"rich_help_panel": "On a cluster"}
SUBMIT = Option(
    "submit", bool, False, "measure as a malleable job of the cluster; its nodes need CES's experiments and training",
    flags=("--submit",), more=ON,
)  # fmt: skip
ON_CLUSTER = (
    SUBMIT,
    Option("workers", str, "1:4", "how many ranks there may be", more=ON | {"metavar": "MIN:MAX"}),
    Option("cpu", str, "1", "of each rank", more=ON),
    Option("memory", str, "1Gi", "of each rank", more=ON),
    Option("image", str, "ces-worker-rl", "where workers are containers", more=ON),
)
"""Options of experiments all of whose parts go through :mod:`ces_experiments.common.cells`."""


@dataclass(frozen=True)
class Experiment:
    """``question`` is made of the options' values; ``measure`` is asked it, and shows how far it is. Where it gives
    one finding after the other, each has what is known so far, and is kept whatever comes."""

    question: Callable[..., Any]
    measure: Callable[[Any, Progress], Found | Iterator[Found]]
    report: Report


def command(
    name: str, where: str, options: Sequence[Option], *, help: str, needs: Callable[[], None] = lambda: None
) -> Callable[..., None]:
    """The command of the experiment that lies at ``where``, named as entry points name things. ``needs`` is called
    first, and ends the program where something is not installed."""
    folder = Option("out", Path, Path("bench-results", name), "where results, tables and plots go")

    def run(**written: Any) -> None:
        needs()
        apart = (PLOTS, *ON_CLUSTER)
        values = {
            option.of or option.name: option.value(written[option.name]) for option in options if option not in apart
        }
        experiment = resolve_name(f"ces_experiments.{where}")
        question = experiment.question(**values)
        if written.get("submit"):
            from ces_experiments.common.submitted import submit

            given = {option.name: written[option.name] for option in options if option not in ON_CLUSTER}
            return submit(name, given, written)
        carry_out(
            name,
            experiment,
            question,
            written["out"],
            plots=written.get("plots", experiment.report.pictures is not None),
        )

    parameters = [option.parameter for option in (*options, folder)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__doc__ = help
    return run


def carry_out(name: str, experiment: Experiment, question: Any, out: Path, *, plots: bool = True) -> None:
    """Ask, write and show. What goes wrong ends the program, named."""
    with measuring(out, plots) as progress:
        machine, before = describe(), CoreTime.now()
        measured = experiment.measure(question, progress)
        for found in (measured,) if isinstance(measured, Found) else measured:
            machine |= {"stolen": CoreTime.now().stolen_since(before), **found.machine}
            results = {"benchmark": name, "machine": machine, **found.results}
            write_results(out, results)
        files = experiment.report.write(results, found, out, plots=plots)
    experiment.report.show(results, out, files)
    if found.failure:
        fail(found.failure)
