"""``ces evolve``: found through the entry-point group ``ces.commands``. Nothing here needs torch but ``train``."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ces_core.evolution.decision_log import WholeLog, read_log
from ces_core.evolution.folder import EvolutionFolder
from ces_core.evolution.gate import Verdict
from ces_core.evolution.solvers import solver_of
from ces_core.evolution.standing import standing, verdict_on
from ces_core.evolution.state import State, StateError, Version, candidate_of, why_promoted
from ces_core.model.errors import UnknownSolverError
from ces_rl.evolve.comparison import replay as replay_log
from ces_rl.evolve.lessons import chosen, learned_until, write_lessons
from ces_rl.evolve.report import log_line, state_table, verdict_table, versions_table
from ces_rl.needs import require_torch

evolve = typer.Typer(help="Let a policy improve by what it is asked.", no_args_is_help=True)
FolderOption = Annotated[
    Path,
    typer.Option("--folder", envvar="CES_EVOLUTION", metavar="DIR", help="the folder that the scheduler was given"),
]
VersionArgument = Annotated[
    str | None, typer.Argument(metavar="VERSION", help="such as v3; left out, the newest candidate")
]
WhyOption = Annotated[str, typer.Option("--why", help="kept with the change, and shown on the dashboard to all")]


@evolve.callback()
def about() -> None:
    """Let a policy improve by what it is asked."""


@evolve.command("train")
def train(
    folder: FolderOption,
    updates: Annotated[int, typer.Option(min=1, help="length of the training")] = 100,
    episodes: Annotated[int, typer.Option(min=1, help="jobs that are placed in each update")] = 384,
    minutes: Annotated[float | None, typer.Option(min=0.0, help="end within so long", show_default=False)] = None,
    held_out: Annotated[
        float, typer.Option(min=0.01, max=0.9, help="share of the days, the last ones, that replay judges on")
    ] = 0.2,
    most: Annotated[int, typer.Option(min=1, help="logged decisions to learn from, drawn evenly")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="same seed, log and settings, same weights")] = 0,
) -> None:
    """Train a candidate on logged problems and as many synthetic ones, by imitation of a search."""
    with _errors():
        require_torch()
        place = EvolutionFolder(folder).existing()
        log = _log(place)
        until_s = learned_until([each.at_s for each in log.decisions], held_out)
        logged = chosen(log.decisions, until_s, most, seed)
        from ces_rl.run import Run
        from ces_rl.run import train as train_run

        with tempfile.TemporaryDirectory(prefix="ces-evolve-") as scratch, _progress() as progress:
            lessons, out = Path(scratch) / "instances", Path(scratch) / "run"
            synthetic = write_lessons(logged, lessons, seed)
            bar = progress.add_task("imitation", total=updates)
            settings = {"updates": updates, "episodes": episodes}
            run = Run.make("imitation", "placement", seed, settings, {"instances": str(lessons)}, out)
            card = train_run(run, minutes=minutes, news=lambda done, *_: progress.update(bar, completed=done))
            about = {"made_s": time.time(), "learned_until_s": until_s, "seed": seed, "policy": card["version"]}
            counts = {"decisions": len(logged), "synthetic": synthetic}
            version = place.add(out / run.env.file, card, **about, **counts)
    typer.echo(f"{version.name}: {version.policy}, from {len(logged)} logged and {synthetic} synthetic problems")
    typer.echo(f"compare it: ces evolve replay {version.name} --folder {folder}")


@evolve.command("replay")
def replay(
    folder: FolderOption,
    version: VersionArgument = None,
    most: Annotated[int, typer.Option(min=1, help="decisions to compare now, the oldest first")] = 5000,
) -> None:
    """Decide logged problems again, by the live policy and by a candidate that has not learned from them."""
    with _errors(), _progress() as progress:
        place = EvolutionFolder(folder).existing()
        state, chosen_version = place.state(), _version(place, version)
        bar = progress.add_task("decisions", total=None)
        done = replay_log(
            place,
            state,
            chosen_version,
            _log(place),
            most,
            lambda count, total: progress.update(bar, completed=count, total=total),
        )
        verdict = verdict_on(place, state, chosen_version.name, time.time())
    Console().print(verdict_table(chosen_version.name, state, verdict))
    typer.echo(f"compared now: {done}; {_conclusion(verdict)}")


@evolve.command("status")
def status(folder: FolderOption) -> None:
    """Show which version is live, what is known of the others, and what happened."""
    with _errors():
        place, now_s = EvolutionFolder(folder).existing(), time.time()
        known, console = standing(place, now_s), Console()
        console.print(state_table(known))
        if known.versions:
            console.print(versions_table(known))
        typer.echo(log_line(read_log(place.log)))


@evolve.command("promote")
def promote(
    folder: FolderOption,
    version: VersionArgument = None,
    force: Annotated[bool, typer.Option("--force", help="whatever speaks against it, but for a freeze")] = False,
) -> None:
    """Make a version live, if the gate lets it. The scheduler takes it up at its next look at the queue."""
    with _errors():
        place, now_s = EvolutionFolder(folder).existing(), time.time()
        name = _version(place, version).name
        state = place.state()
        if name == state.live:
            raise StateError(f"{name} is live already")
        solver_of(place, state, name)  # else the scheduler would have to refuse it
        verdict = verdict_on(place, state, name, now_s)
        if verdict.against and not (force and not state.frozen):
            reasons = "".join(f"\n  {each}" for each in verdict.against)
            raise StateError(f"{name} is not promoted:{reasons}")
        why = why_promoted(verdict.interval) + (", forced" if verdict.against else "")
        after = place.change(lambda now: _unless_changed(now, state).promoted(name, now_s, why))
    typer.echo(f"{after.live} is live, and {after.former} its shadow: {why}")


@evolve.command("rollback")
def rollback(folder: FolderOption, why: WhyOption = "by hand") -> None:
    """Make the former version live again, also while evolution is frozen. The present one is no candidate any more."""
    with _errors():
        place = EvolutionFolder(folder).existing()
        after = place.change(lambda now: now.rolled_back(time.time(), why))
    typer.echo(f"{after.live} is live again: {why}")


@evolve.command("freeze")
def freeze(
    folder: FolderOption,
    off: Annotated[bool, typer.Option("--off", help="let evolution go on")] = False,
    why: WhyOption = "by hand",
) -> None:
    """Stop all promotions, and all returns but those by hand; the shadow rests. Decisions are still logged."""
    with _errors():
        place = EvolutionFolder(folder).existing()
        after = place.change(lambda now: now.with_frozen(not off, time.time(), why))
    typer.echo(f"evolution {'is frozen' if after.frozen else 'goes on'}; {after.live} is live")


def _log(place: EvolutionFolder) -> WholeLog:
    log = read_log(place.log)
    if log.torn:
        typer.echo(f"{log.torn} segments of the log end in a torn line, which is left out", err=True)
    return log


def _version(place: EvolutionFolder, name: str | None) -> Version:
    if name is not None:
        return place.version(name)
    found = candidate_of(place.state(), place.versions())
    if found is None:
        raise StateError("there is no candidate: ces evolve train makes one")
    return found


def _unless_changed(now: State, before: State) -> State:
    if now != before:
        raise StateError("somebody else has changed what is live just now: see ces evolve status")
    return now


def _conclusion(verdict: Verdict) -> str:
    return "it may be promoted" if verdict.promoted else f"against it: {'; '.join(verdict.against)}"


@contextmanager
def _progress() -> Iterator[Progress]:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield progress


@contextmanager
def _errors() -> Iterator[None]:
    """Ends the command where something cannot be. All of evolution's own errors, and a policy's, are ValueErrors."""
    try:
        yield
    except (ValueError, UnknownSolverError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error
    except OSError as error:
        typer.echo(f"error: {error.filename or 'the folder'}: {error.strerror or error}", err=True)
        raise typer.Exit(2) from error
