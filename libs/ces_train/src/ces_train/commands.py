"""``ces train``: found through the entry-point group ``ces.commands``. Nothing here needs torch until it is called."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ces_train.curves_command import curves
from ces_train.longrun_command import value as learn_value
from ces_train.needs import require_torch
from ces_train.settings import GENERAL, Settings
from ces_train.stepping_command import steps
from ces_train.thesis_settings import BALANCE, THESIS, ThesisSettings

train = typer.Typer(help="Train the learned scheduler.", no_args_is_help=True)
PRESETS: dict[str, Settings | ThesisSettings] = {each.preset: each for each in (GENERAL, THESIS, BALANCE)}


class Preset(StrEnum):
    """Which settings a run begins from."""

    general = "general"
    thesis = "thesis"
    balance = "balance"


@train.callback()
def about() -> None:
    """Train the learned scheduler."""


train.command("value")(learn_value)
train.command("curves")(curves)
train.command("steps")(steps)


@train.command("ppo")
def ppo(
    preset: Annotated[
        Preset,
        typer.Option(help="general: any size of job; thesis: its own network; balance: without bandwidth levels"),
    ] = Preset.general,
    out: Annotated[Path, typer.Option(help="folder for policy, model card, log and checkpoint")] = Path("trained"),
    minutes: Annotated[float | None, typer.Option(min=0.0, help="stop after so long", show_default=False)] = None,
    updates: Annotated[
        int | None, typer.Option(min=1, help="length of the run; the preset's when left out", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="same seed, same run")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the run in the folder")] = False,
) -> None:
    """Train a placement policy, by proximal policy optimisation or taught by a search (general), and export it."""
    require_torch()
    from ces_train import running, thesis_running

    settings = PRESETS[preset.value]
    if updates is not None:
        settings = replace(settings, updates=updates)
    if isinstance(settings, ThesisSettings):
        course = thesis_running.course(settings, seed)
    else:
        course = running.course(settings, seed)
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("search sets the mark", total=settings.updates)

        def news(done: int, total: int, measured: dict[str, float]) -> None:
            progress.update(bar, completed=done, total=total, description=f"composite {measured['composite']:.4f}")
            regrets = [
                f"{name.removesuffix('/regret')} {value:.4f}" for name, value in measured.items() if "regret" in name
            ]
            if regrets:
                console.print(f"update {done}: regret {', '.join(regrets)}", highlight=False)

        try:
            card = running.train(course, out, minutes=minutes, resume=resume, news=news)
        except ValueError as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(2) from error
    table = Table("regime", "decoding", "solved", "mean regret")
    for decoding in list(card["scores"])[1:]:
        for regime, score in card["scores"][decoding].items():
            table.add_row(regime, decoding, f"{score['solved']:.1%}", f"{score['regret']:.4f}")
    Console().print(table)
    typer.echo(f"{card['version']}: {card['steps']} steps in {card['seconds']:.0f} s, written to {out}")


@train.command("proposals")
def proposals(
    out: Annotated[Path, typer.Option(help="folder for the weights with their card")] = Path("trained"),
    generations: Annotated[int, typer.Option(min=1, help="length of the run")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="same seed, same weights")] = 0,
) -> None:
    """Learn what quick first plans go by, which nodes of a large cluster they are looked for among, and how tasks are
    best placed anew."""
    from ces_train.proposals import FILE, Settings, train

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("learning", total=2 * generations)
        settings = Settings(generations=generations)
        card = train(settings, seed, out, lambda generation, _: progress.update(bar, completed=generation + 1))
    for what in ("gain beside the first dive", "gain of remaking it", "before learning"):
        table = Table("jobs", what)
        for kind, gain in card[what].items():
            table.add_row(kind, f"{gain:.5f}")
        Console().print(table)
    typer.echo(f"written to {out / FILE}")
