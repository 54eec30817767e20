"""What the terminal shows, as HTML: the same tables and sentences, made of the same views.

It has no script and asks nobody for anything. A notebook's theme is not known here, so text and lines take the colour
that is current there, and states have colours that can be read on white and on black.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import islice, pairwise

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.style import Style
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from ces_client.view.plain import plain
from ces_client.view.tables import FactList

MOST_ROWS = 100  # of a table, and parts of a text
MOST_CHARACTERS = 2000  # of one text
COLOURS = {"red": "#d13438", "green": "#1a8f3c", "yellow": "#a67700", "cyan": "#0b84a5", "magenta": "#a855c7"}
STYLE = """<style>
.ces-shown{font-size:13px;line-height:1.45;max-width:100%;overflow-x:auto}
.ces-shown p{margin:.2em 0;white-space:pre-wrap;overflow-wrap:anywhere}
.ces-shown table{border-collapse:collapse;margin:.4em 0;font-size:inherit;border:0;color:inherit}
.ces-shown th,.ces-shown td{text-align:left;vertical-align:top;padding:.2em 1em .2em 0;background:none;border:0;
border-bottom:1px solid rgba(128,128,128,.35);color:inherit;max-width:32em;overflow-wrap:break-word}
.ces-shown th{font-weight:600;white-space:nowrap}
.ces-shown .ces-right{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.ces-shown .ces-dim{opacity:.75}
.ces-shown summary{cursor:pointer}
.ces-shown svg{display:block;max-width:100%;height:auto;font-family:inherit}
.ces-shown progress{width:8em}
</style>"""


def shown(*parts: str) -> str:
    """The whole of what a cell shows; ``parts`` are HTML already."""
    return f'<div class="ces-shown">{STYLE}{"".join(parts)}</div>'


def word(text: str) -> str:
    """Text from elsewhere: none of it is markup, steers, or turns what stands beside it around."""
    cut = text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS]
    more = "" if cut is text else f"… ({len(text) - len(cut):,} characters more)"
    return f"<bdi>{escape(plain(cut))}</bdi>{more}"


def html(renderable: RenderableType | None) -> str:
    """A renderable of ``ces_client.view`` as HTML. Raises TypeError for a kind that those do not use."""
    match renderable:
        case None:
            return ""
        case str():
            return f"<p>{word(renderable)}</p>"
        case Text():
            return f"<p>{_styled(renderable)}</p>" if renderable.plain else ""
        case FactList():
            return _facts(renderable.facts)
        case Group():
            parts = renderable.renderables
            return "".join(map(html, parts[:MOST_ROWS])) + _rest(len(parts) - MOST_ROWS)
        case Table():
            return _table(renderable)
        case Tree():
            inner = "".join(html(child) for child in renderable.children[:MOST_ROWS])
            more = _rest(len(renderable.children) - MOST_ROWS)
            return f'{html(renderable.label)}<div style="margin-left:1.5em">{inner}{more}</div>'
        case ProgressBar():
            return f'<progress max="{renderable.total or 1:g}" value="{renderable.completed:g}"></progress>'
    raise TypeError(f"{type(renderable).__name__} has no HTML")


def _rest(left: int) -> str:
    return f"<p>and {left:,} more</p>" if left > 0 else ""


def _styled(text: Text) -> str:
    if len(text) > MOST_CHARACTERS:
        return word(text.plain)
    ends = sorted({0, len(text), *(end for span in text.spans for end in (span.start, span.end) if end < len(text))})
    return "".join(_span(word(text.plain[start:end]), _style(text, start)) for start, end in pairwise(ends))


def _style(text: Text, at: int) -> Style:
    spans = [span.style for span in text.spans if span.start <= at < span.end]
    return Style.combine(each if isinstance(each, Style) else Style.parse(each) for each in (text.style, *spans))


def _span(inner: str, style: Style) -> str:
    looks = ["font-weight:600"] if style.bold else []
    if style.color is not None and style.color.name in COLOURS:
        looks.append(f"color:{COLOURS[style.color.name]}")
    dim = ' class="ces-dim"' if style.dim else ""
    return f'<span{dim} style="{";".join(looks)}">{inner}</span>' if dim or looks else inner


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    kept = facts[:MOST_ROWS]
    rows = "".join(f'<tr><th scope="row">{word(name)}</th><td>{word(value)}</td></tr>' for name, value in kept)
    return f"<table>{rows}</table>{_rest(len(facts) - MOST_ROWS)}"


def _table(table: Table) -> str:
    sides = [' class="ces-right"' if column.justify == "right" else "" for column in table.columns]
    heads = [_cell(column.header) for column in table.columns]
    head = "".join(f'<th scope="col"{side}>{text}</th>' for text, side in zip(heads, sides, strict=True))
    rows = islice(zip(*(column.cells for column in table.columns), strict=True), MOST_ROWS)
    body = "".join(
        "<tr>" + "".join(f"<td{side}>{_cell(cell)}</td>" for cell, side in zip(row, sides, strict=True)) + "</tr>"
        for row in rows
    )
    left = table.row_count - MOST_ROWS
    note = f"<p>the first {MOST_ROWS} rows of {table.row_count:,}</p>" if left > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def _cell(cell: RenderableType) -> str:
    match cell:
        case str():
            return word(cell)
        case Text():
            return _styled(cell)
    return html(cell)
