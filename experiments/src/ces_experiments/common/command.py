"""Makes the command under ``ces bench`` of an experiment. Options are data; asking, writing and showing are the same
for all experiments.

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
    """An option of a command. ``usual``: its default. ``of``: the question's name for it, if another. ``read``: makes
    the question's value of the flag and what was written behind it; raises typer.BadParameter. ``flags``: its flags, if
    they do not follow from the name. ``more``: further arguments of typer.Option."""

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
        """The option as a parameter of the function that typer reads."""
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
    """``question``: makes the question of the options' values. ``measure``: answers it, and shows its progress. It may
    yield several findings, each with all that is known so far: each is written at once, so an interrupted run keeps the
    last one."""

    question: Callable[..., Any]
    measure: Callable[[Any, Progress], Found | Iterator[Found]]
    report: Report


def command(
    name: str, where: str, options: Sequence[Option], *, help: str, needs: Callable[[], None] = lambda: None
) -> Callable[..., None]:
    """The command of the experiment at ``where``, written ``folder.module:NAME`` within ces_experiments. ``needs`` is
    called first, and ends the program where something is not installed."""
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
    """Ask the question, write results and report, show them. An error ends the program with its name."""
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
