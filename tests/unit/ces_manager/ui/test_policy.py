"""The gains of an evolving policy's versions, as their page draws them, in both languages."""

from __future__ import annotations

from typing import Any

import pytest
from ui_modules import Modules

pytestmark = pytest.mark.needs("browser")
DRAW = """
const { render, h } = await import("/ui/vendor/preact.js");
await (await load("show")).setLanguage(given.language);
const { GainBar, Costs } = await load("parts/policy_gain");
const place = document.createElement("div");
render([h(GainBar, { gain: given.gain }), h(Costs, { gain: given.gain })], place);
const bar = place.querySelector("rect.took");
const numbers = bar && ["x", "width"].map((name) => Number(bar.getAttribute(name)));
return [place.textContent.replace(/\\s+/g, " ").trim(), numbers];
"""
GAIN = {"decisions": 159, "mean": 0.0737, "low": 0.067, "high": 0.0822, "refused": 0, "slower": 1.034}


def drawn(ui: Modules, gain: Any, language: str = "en") -> tuple[str, list[float] | None]:
    text, bar = ui.run(DRAW, gain=gain, language=language)
    return text, bar


def test_an_interval_is_said_and_drawn_beside_zero(ui: Modules) -> None:
    text, bar = drawn(ui, GAIN)
    assert text == "+0.0737 +0.0670 to +0.0822, of 159 decisions1.03 times as long"
    assert bar == pytest.approx([83.5, 7.6]), "of 100, with zero at 50 and 0.1 at the end"
    text, bar = drawn(ui, GAIN | {"mean": -0.3, "low": -0.5, "high": -0.2, "refused": 1})
    assert text.startswith("−0.3000 ")
    assert text.endswith("1 job refused")
    assert bar == [0, 0.5], "what lies beyond the scale stands at its end"


def test_in_chinese_and_where_nothing_was_compared(ui: Modules) -> None:
    assert drawn(ui, GAIN, "zh")[0] == "+0.0737 +0.0670 至 +0.0822，159 次决策耗时为 1.03 倍"
    assert drawn(ui, None) == ("nothing compared yet–", None)
