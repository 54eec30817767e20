"""``ces train``: found through the entry-point group ``ces.commands``. Nothing here needs torch until it is called."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from ces_rl import flags, plugins
from ces_rl.envs.base import PolicyEnv
from ces_rl.needs import require_torch

if TYPE_CHECKING:
    from ces_client import Client
    from ces_rl.run import Run

ON = "On a cluster"
FIRST_ENV = {"cem": "start-weights", "es": "longrun"}
"""The environment of an algorithm where --env is left out; placement for the others."""


class TrainGroup(TyperGroup):
    """Own commands, and one for each algorithm, whose flags depend on ``--env``."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*plugins.points(plugins.ALGORITHMS), *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """For help texts and completion: a stand-in that knows the help line, for an algorithm not imported yet."""
        if cmd_name in plugins.points(plugins.ALGORITHMS):
            return TyperCommand(cmd_name, help=plugins.help_line(plugins.ALGORITHMS, cmd_name))
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in plugins.points(plugins.ALGORITHMS):
            return args[0], algorithm_command(args[0], env_of(args)), args[1:]
        return super().resolve_command(ctx, args)

    def all_commands(self) -> dict[str, Any]:
        """Own commands, and those of the algorithms with the flags of their first environment."""
        return {name: algorithm_command(name, None) for name in plugins.points(plugins.ALGORITHMS)} | dict(
            self.commands
        )


train = typer.Typer(cls=TrainGroup, help="Train the learned schedulers.", no_args_is_help=True)


@train.callback()
def about() -> None:
    """Train the learned schedulers."""


@train.command("ship")
def ship(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="folder of a run, complete or not")],
    out: Annotated[Path | None, typer.Option(help="where file and card go; the run's own folder when left out")] = None,
) -> None:
    """Write the shipped file (ONNX or JSON) and its model card from a run, scored now."""
    from ces_rl.run import Run
    from ces_rl.run import ship as ship_run

    with _errors():
        run = Run.open(folder)
        if run.env.unasked:
            raise ValueError(f"{folder} cannot be shipped: {run.env.unasked}")
        card = ship_run(run, out or folder)
    _report(card, out or folder, run.env.file)


@train.command("fetch")
def fetch(
    job: Annotated[str, typer.Argument(metavar="JOB", help="id or name of a job that --submit has made")],
    out: Annotated[Path, typer.Option(help="folder for shipped file, card, log and checkpoint")] = Path("trained"),
) -> None:
    """Fetch what a cluster has made for --submit, of `ces train` or `ces bench`."""
    from ces_client.cli.session import connect, job_id

    with connect() as client:
        _fetched(client, job_id(client, job), out)


def env_of(args: Sequence[str]) -> str | None:
    """What ``--env`` says in a command line."""
    for number, word in enumerate(args):
        if word == "--env" and number + 1 < len(args):
            return args[number + 1]
        if word.startswith("--env="):
            return word.removeprefix("--env=")
    return None


def algorithm_command(name: str, env: str | None) -> Any:
    """The command of an algorithm, with its flags and those of the environment ``env``."""
    env = env or FIRST_ENV.get(name, "placement")
    with _errors():
        kind, place = plugins.algorithm(name), plugins.environment(env)
    defaults = place.defaults(name)

    def call(**given: Any) -> None:
        settings = {
            part: {field.name: given[field.name] for field in fields(of)}
            for part, of in (("algorithm", kind.Settings), ("env", place.Settings))
        }
        read = flags.read(kind.Settings, settings["algorithm"]), flags.read(place.Settings, settings["env"])
        if kind.needs_torch or issubclass(place, PolicyEnv):
            require_torch()
        own, of_env = ({field.name: getattr(of, field.name) for field in fields(of)} for of in read)
        _train(name, env, own, of_env, given)

    call.__doc__ = plugins.help_line(plugins.ALGORITHMS, name)
    common = [each for each in inspect.signature(_common, eval_str=True).parameters.values() if each.name != "env"]
    first = inspect.Parameter(
        "env",
        inspect.Parameter.KEYWORD_ONLY,
        default=env,
        annotation=Annotated[
            str, typer.Option(help=f"what is learned: {', '.join(plugins.points(plugins.ENVS))}; its flags are below")
        ],
    )
    own = flags.parameters(kind.Settings, defaults.algorithm, f"Settings of {name}")
    its = flags.parameters(place.Settings, defaults.env, f"Settings of the environment {env}")
    call.__signature__ = inspect.Signature([first, *common, *own, *its])  # type: ignore[attr-defined]
    holder = typer.Typer()
    holder.command(name)(call)
    holder.callback()(about)
    return get_group(holder).commands[name]


def _common(
    *,
    out: Annotated[Path, typer.Option(help="folder for shipped file, card, log and checkpoint")] = Path("trained"),
    minutes: Annotated[
        float | None, typer.Option(min=0.0, help="end within so long, the last evaluation included", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="same seed and settings, same weights")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the run in the folder")] = False,
    submit: Annotated[
        bool,
        typer.Option(
            "--submit",
            help="learn as a malleable job of the cluster; its nodes need CES's training",
            rich_help_panel=ON,
        ),
    ] = False,
    workers: Annotated[
        str, typer.Option(metavar="MIN:MAX", help="how many ranks there may be", rich_help_panel=ON)
    ] = "1:4",
    cpu: Annotated[str, typer.Option(help="of each rank", rich_help_panel=ON)] = "1",
    memory: Annotated[str, typer.Option(help="of each rank", rich_help_panel=ON)] = "1Gi",
    image: Annotated[str, typer.Option(help="where workers are containers", rich_help_panel=ON)] = "ces-worker-rl",
) -> None:
    """Flags of every algorithm."""


def _submitted(run: Run, given: Mapping[str, Any]) -> None:
    """The run by a cluster, followed until its files are here."""
    from ces_client.cli.output import say
    from ces_client.cli.session import connect
    from ces_rl.submission import Workers, check_free, follow, training_job

    out = given["out"]
    with _errors():
        check_free(out)
        for flag in ("minutes", "resume"):
            if given[flag]:
                raise ValueError(f"--{flag} and --submit exclude each other: a job has all its updates to do")
        workers = Workers.of(given["workers"], given["cpu"], given["memory"], given["image"])
        job = training_job(run.spec(), workers)
    with connect() as client:
        view = client.jobs.submit(job)
        say(f"{view.name} submitted: {view.id}", stderr=True)
        say(f"Ctrl-C leaves it running; later: ces train fetch {view.id} --out {out}", stderr=True)
        state = follow(client, view.id, partial(say, stderr=True))
        if state != "succeeded":
            say(f"error: the job has {state}: ces describe job {view.id}", stderr=True)
            raise typer.Exit(1)
        _fetched(client, view.id, out)


def _fetched(client: Client, job: str, out: Path) -> None:
    """Files, with a report of what was learned if a run of training has sent them."""
    from ces_rl.run import CARD
    from ces_rl.submission import fetch

    with _errors():
        files = fetch(client, job, out)
        if not files:
            raise ValueError(f"job {job} has not sent anything: `ces logs {job}` shows how far it came")
        if CARD not in files:
            typer.echo(f"written to {out}: {', '.join(sorted(files))}")
            return
        try:
            card = json.loads(files[CARD])
            _report(card, out, plugins.environment(card["env"]).file)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{out / CARD} is no card of a model: {error!r}") from error


def _train(name: str, env: str, algorithm: dict[str, Any], place: dict[str, Any], given: Mapping[str, Any]) -> None:
    from ces_rl.rank import update_line
    from ces_rl.run import Run
    from ces_rl.run import train as train_run

    if given["submit"]:
        with _errors():
            run = Run.make(name, env, given["seed"], algorithm, place, given["out"])
        return _submitted(run, given)
    console, out = Console(stderr=True), given["out"]
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with _errors(), Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(name, total=algorithm["updates"])

        def news(done: int, total: int, measured: dict[str, float]) -> None:
            progress.update(bar, completed=done, total=total)
            say(update_line(done, total, measured))

        def say(line: str) -> None:
            console.print(line, highlight=False, soft_wrap=True)

        run = Run.make(name, env, given["seed"], algorithm, place, out)
        card = train_run(run, minutes=given["minutes"], resume=given["resume"], news=news, say=say)
    _report(card, out, run.env.file)


def _report(card: Mapping[str, Any], out: Path, file: str) -> None:
    """What was learned, beside what was there before."""
    table = Table("decided by", "instances", "figure", "before learning", "now")
    before = card["before learning"]
    for way, groups in card["scores"].items():
        for group, figures in groups.items() if isinstance(groups, dict) else ():
            for name, value in figures.items():
                table.add_row(way, group, name, f"{before[way][group][name]:.4f}", f"{value:.4f}")
    for way, groups in card["baselines"].items():
        for group, figures in groups.items():
            for name, value in figures.items():
                table.add_row(way, group, name, "", f"{value:.4f}")
    Console().print(table)
    typer.echo(f"before learning: {before['what']}")
    took = "" if card["seconds"] is None else f" in {card['seconds']:.0f} s"
    typer.echo(f"{card['version']}: {card['steps']} steps{took}, written to {out / file}")


@contextmanager
def _errors() -> Iterator[None]:
    """Ends the command where a run cannot be."""
    try:
        yield
    except ValueError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error
