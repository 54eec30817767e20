"""What requests of an application take, as the dashboard draws it: the numbers of `ces describe job`."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ui_modules import Modules

from ces_client.view.requests import measured_requests
from ces_common.messages.api import TaskView
from ces_common.messages.request_times import RequestStep, RequestTime

pytestmark = pytest.mark.needs("browser")
DRAW = """
const { render, h } = await import("/ui/vendor/preact.js");
await (await load("show")).setLanguage(given.language);
const { Requests } = await load("parts/requests");
const place = document.createElement("div");
render(h(Requests, { requests: given.requests, tasks: given.tasks ?? undefined }), place);
const rects = [...place.querySelectorAll("rect:not(.axis)")];
const number = (it, name) => Number(it.getAttribute(name));
const bars = rects.map((it) => [it.getAttribute("class"), number(it, "x"), number(it, "width")]);
return [place.textContent.replace(/\\s+/g, " ").trim(), bars];
"""
STEPS = [("access", 2.0), ("roof1 -> gate1", 13.0), ("detect-0 on gate1", 25.0), ("gate1 -> roof1", 4.0)]
LOOP = RequestTime(
    name="loop",
    user="cam",
    time_ms=44,
    deadline_ms=55,
    hard=True,
    steps=[RequestStep(what=what, ms=ms) for what, ms in STEPS],
)
ENDLESS = RequestTime(name="stuck", deadline_ms=50, steps=[RequestStep(what="t-0 on n1")])


def drawn(ui: Modules, *requests: RequestTime, tasks: Any = None, language: str = "en") -> tuple[str, list[Any]]:
    text, bars = ui.run(DRAW, requests=[each.model_dump() for each in requests], tasks=tasks, language=language)
    return text, bars


def test_each_part_begins_where_the_one_before_ends(ui: Modules) -> None:
    text, bars = drawn(ui, LOOP)
    assert "loop of user cam: 44 ms of 55 ms, hard" in text
    assert "misses" not in text
    parts = [bar for bar in bars if bar[0] != "deadline"]
    assert [x + width for _, x, width in parts[:-1]] == pytest.approx([x for _, x, _ in parts[1:]])
    assert parts[-1][1] + parts[-1][2] == pytest.approx(100 * 44 / 55)
    assert [kind for kind, *_ in parts] == ["took", "took", "took longest", "took"]
    assert {x for kind, x, _ in bars if kind == "deadline"} == {99.5}


def test_a_missed_deadline_lies_within_the_bars(ui: Modules) -> None:
    text, bars = drawn(ui, LOOP.model_copy(update={"deadline_ms": 22.0}))
    assert "misses its deadline" in text
    assert {x for kind, x, _ in bars if kind == "deadline"} == {50}
    endless, bars = drawn(ui, ENDLESS)
    assert "never ends of 50 ms" in endless
    assert [kind for kind, *_ in bars] == ["deadline"]


def test_what_was_measured_is_told_as_the_command_tells_it(ui: Modules) -> None:
    told = {"p50_ms": 41.2, "p95_ms": 55.0, "p99_ms": 61.0, "answers": 200, "late": 3, "lost": 0}
    task = TaskView(name="camera-0", rank=0, cpu=1, memory=1, progress={"progress": {"requests": {"loop": told}}})
    tasks = [task.model_dump(mode="json")]
    said = measured_requests([task])["loop"].text.replace(" (1.5%)", "")
    assert said in drawn(ui, LOOP, tasks=tasks)[0]
    chinese = drawn(ui, LOOP, tasks=tasks, language="zh")[0]
    assert set(re.findall(r"[\d.]+", said)) <= set(re.findall(r"[\d.]+", chinese))
    assert "nothing reported yet" in drawn(ui, ENDLESS, tasks=tasks)[0]
    assert "measured" not in drawn(ui, ENDLESS)[0]


def test_numbers_that_are_none_count_for_nothing(ui: Modules) -> None:
    task = {"progress": {"requests": {"loop": {"p50_ms": "soon", "answers": None, "lost": 2}}}}
    assert "measured: nothing yet; 0 answers, 0 late, 2 requests without an answer" in drawn(ui, LOOP, tasks=[task])[0]
