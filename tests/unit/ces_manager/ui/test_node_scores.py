"""How fast a node is, as its page draws it, in both languages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from ui_modules import Modules

from ces_common.messages.scores import Measured, Measurement
from ces_common.scores import REFERENCE, scores_of

pytestmark = pytest.mark.needs("browser")
DRAW = """
const { render, h } = await import("/ui/vendor/preact.js");
await (await load("show")).setLanguage(given.language);
const { NodeScores } = await load("parts/node_scores");
const place = document.createElement("div");
render(h(NodeScores, { scores: given.told === "unknown" ? undefined : given.told }), place);
return place.textContent.replace(/\\s+/g, " ").trim();
"""


def drawn(ui: Modules, told: Any, language: str = "en") -> str:
    text: str = ui.run(DRAW, told=told, language=language)
    return text


def scores(*times: float, source: str = "pow") -> Any:
    rates = [each * REFERENCE["integer"] for each in times]
    one = Measurement(kind="integer", threads=2, rates=rates, source=source)
    return scores_of(Measured(at=datetime.now(UTC), measurements=[one])).model_dump(mode="json")


def test_every_level_is_drawn_with_its_source(ui: Modules) -> None:
    text = drawn(ui, scores(2.0, 2.0))
    for said in ("Level6 of 10", "computing2 integers", "32 kpowers/s", "pow"):
        assert said in text
    assert "noisy" not in text
    assert drawn(ui, scores(2.0, 1.0)).count("noisy") == 3, "the level, the category and the measurement"


def test_in_chinese_and_where_nothing_was_measured(ui: Modules) -> None:
    assert "6（满分 10）" in drawn(ui, scores(2.0, 2.0), "zh")
    assert "Its agent has not measured" in drawn(ui, None)
    assert drawn(ui, "unknown") == ""
