"""Where output goes and in what form: tables for people, JSON for scripts, errors in both."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.segment import Segment
from rich.text import Text

from ces_client.errors import bad_field
from ces_client.view.formats import local_now as local_now
from ces_client.view.plain import plain, plain_json, plain_text
from ces_common.messages.api import Problem

PIPE_WIDTH = 200  # no terminal to fit into: keep lines whole for whoever reads them


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="table for people, json for scripts")]


class PlainConsole(Console):
    """Whatever is printed on it, no text steers the terminal: only styles do, and the console itself."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if isinstance(renderable, Text):
            renderable = plain_text(renderable)  # before it is wrapped
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=plain(segment.text))


def console(*, stderr: bool = False) -> Console:
    """Takes text as it is (no markup, no emoji codes, no highlighting)."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return PlainConsole(stderr=stderr, markup=False, emoji=False, highlight=False, width=width)


def progress_bars() -> Progress:
    """Bars on standard error while somebody waits; none where that is no terminal."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    screen = console(stderr=True)
    return Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)


def show(renderable: RenderableType) -> None:
    """Prints it; sentences, ids and commands are left for the terminal to wrap, so that they copy whole."""
    console().print(renderable, soft_wrap=True)


def say(text: str, *, stderr: bool = False) -> None:
    """Prints a line as it is, not wrapped and without a style."""
    typer.echo(plain(text), err=stderr)


def on_terminal() -> bool:
    return sys.stdout.isatty()


def say_raw(line: str) -> None:
    """Prints a line with all that would steer a terminal: only where standard output is none. Raises BadInput."""
    if on_terminal():
        problem = "standard output is a terminal, which would obey what is in the text"
        raise bad_field("Raw text is not shown", "--raw", problem, "send it to a file or another program")
    typer.echo(line, color=True)


Document = BaseModel | dict[str, Any] | Sequence[BaseModel | dict[str, Any]]


def show_json(value: Document, indent: int | None = 2) -> None:
    """One JSON document: a model, an object, or a list of them."""
    typer.echo(plain_json(json.dumps(to_jsonable_python(value), indent=indent, ensure_ascii=False)))


def show_json_line(value: Document) -> None:
    """One document on one line, for outputs that go on."""
    show_json(value, indent=None)


def tell(value: Document, picture: RenderableType, output: Output) -> None:
    """Shows the picture to people, the value to scripts."""
    if output == Output.JSON:
        show_json(value)
    else:
        show(picture)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for JSON. Read from the words themselves, since an error may come before the parser
    has reached the option."""
    words = list(arguments)
    if "--" in words:
        words = words[: words.index("--")]
    pairs = zip(words, [*words[1:], ""], strict=False)
    return any(
        word in ("-ojson", "--output=json") or (word in ("-o", "--output") and following == "json")
        for word, following in pairs
    )


def show_problem(problem: Problem, *, as_json: bool) -> None:
    """An error: on standard error for people, as the one JSON object on standard output for scripts."""
    if as_json:
        show_json({"error": problem})
        return
    screen = console(stderr=True)
    head = Text("error: ", style="bold red").append(problem.title, style="default not bold")
    told = {entry.get("problem") for entry in problem.errors}
    lines = "; ".join(f"{entry.get('field')}: {entry.get('problem')}" for entry in problem.errors)
    if problem.detail and problem.detail not in told | {lines}:
        head.append(f": {problem.detail}")
    screen.print(head, soft_wrap=True)
    for entry in problem.errors:
        screen.print(_entry(entry), soft_wrap=True)


def _entry(entry: dict[str, str]) -> Text:
    rest = dict(entry)
    line = Text("  ")
    field, remedy = rest.pop("field", ""), rest.pop("remedy", "")
    said = "; ".join(value for value in rest.values() if value)
    line.append(field, style="bold")
    if said:
        line.append(f": {said}" if field else said)
    if remedy:
        line.append("\n    remedy: ", style="cyan").append(remedy)
    return line
