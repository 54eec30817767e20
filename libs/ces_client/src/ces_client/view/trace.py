"""An attempt's waterfall: what was done, by whom, from when on and for how long."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ces_client.view.tables import plain_table
from ces_common.messages.traces import JobTrace, SpanView

WIDTH = 32  # characters of a bar


def waterfall(trace: JobTrace) -> RenderableType:
    """The whole picture, with where it comes from."""
    head = Text(f"{trace.name}, attempt {trace.attempt} of {trace.attempts}", style="bold")
    if not trace.spans:
        return Group(head, Text("nothing is kept of this attempt any more", style="dim"))
    source = f"as its services told, trace {trace.trace}" if trace.source == "spans" else "from its events: not traced"
    first, last = _range(trace.spans)
    table = plain_table("what", "who", "from", "took", "")
    for span in trace.spans:
        took = "goes on" if span.duration_us is None else duration(span.duration_us)
        who = f"{span.service} {span.node or ''}".strip()
        name = Text("  " * span.depth + span.name)
        table.add_row(name, Text(who), Text(duration(span.start_us)), Text(took), Text(bar(span, first, last)))
    return Group(head, Text(source, style="dim"), Text(), table)


def bar(span: SpanView, first: int, last: int, width: int = WIDTH) -> str:
    """The span's part of what lies between ``first`` and ``last`` microseconds; what goes on reaches to the end."""
    whole = max(1, last - first)
    begin = (span.start_us - first) * width // whole
    end = width if span.duration_us is None else (span.start_us + span.duration_us - first) * width // whole
    begin = min(begin, width - 1)
    return " " * begin + "█" * max(1, end - begin)


def duration(microseconds: int) -> str:
    """At three digits, in ms or s."""
    if microseconds < 0:
        return f"-{duration(-microseconds)}"
    if microseconds < 1_000_000:
        return f"{microseconds / 1000:.3g} ms"
    return f"{microseconds / 1e6:.3g} s" if microseconds < 1e9 else f"{microseconds / 1e6:.0f} s"


def _range(spans: list[SpanView]) -> tuple[int, int]:
    ends = [span.start_us + (span.duration_us or 0) for span in spans]
    return min(span.start_us for span in spans), max(ends)
