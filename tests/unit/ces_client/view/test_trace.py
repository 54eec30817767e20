from __future__ import annotations

import pytest
from rich.console import Console

from ces_client.view.trace import bar, duration, waterfall
from ces_common.messages.traces import JobTrace, SpanView


def span(id_: str, start_us: int, duration_us: int | None, depth: int = 0, **more: str) -> SpanView:
    given = {"name": id_, "service": "manager", **more}
    return SpanView(id=id_, depth=depth, start_us=start_us, duration_us=duration_us, **given)


def text(trace: JobTrace) -> str:
    console = Console(width=160)
    with console.capture() as captured:
        console.print(waterfall(trace))
    return captured.get()


def test_every_step_has_a_line_and_says_where_it_comes_from() -> None:
    spans = [span("POST /v1/jobs", 0, 2_000), span("start worker", 5_000, 95_000, 1, service="edge-agent", node="n1")]
    told = JobTrace(id="j", name="ring", attempt=1, attempts=2, source="spans", trace="ab" * 16, spans=spans)
    shown = text(told)
    assert "ring, attempt 1 of 2" in shown
    assert f"as its services told, trace {'ab' * 16}" in shown
    (line,) = [line for line in shown.splitlines() if "start worker" in line]
    assert "  start worker" in line
    assert "edge-agent n1" in line
    assert "5 ms" in line
    assert "95 ms" in line
    assert "from its events" in text(told.model_copy(update={"source": "events", "trace": None}))


def test_what_goes_on_and_what_is_gone() -> None:
    goes_on = JobTrace(id="j", name="r", attempt=1, attempts=1, source="events", spans=[span("queued", 0, None)])
    assert "goes on" in text(goes_on)
    assert "nothing is kept" in text(goes_on.model_copy(update={"spans": []}))


def test_a_name_that_steers_a_terminal_is_text() -> None:
    odd = JobTrace(id="j", name="r", attempt=1, attempts=1, source="spans", spans=[span("\x1b[31m[red]", 0, 1)])
    assert "\x1b[31m" not in text(odd)
    assert "[red]" in text(odd)


@pytest.mark.parametrize(
    ("start_us", "duration_us", "drawn"),
    [
        (0, 100, "██████████"),
        (0, 50, "█████"),
        (50, 50, "     █████"),
        (100, 0, "         █"),
        (20, None, "  ████████"),
    ],
)
def test_bars(start_us: int, duration_us: int | None, drawn: str) -> None:
    assert bar(span("s", start_us, duration_us), 0, 100, 10) == drawn


@pytest.mark.parametrize(
    ("microseconds", "said"),
    [(0, "0 ms"), (123, "0.123 ms"), (4_560, "4.56 ms"), (1_234_000, "1.23 s"), (-5_000, "-5 ms"), (3_600e6, "3600 s")],
)
def test_durations(microseconds: float, said: str) -> None:
    assert duration(int(microseconds)) == said
