"""What is loaded when it is needed: again where the connection breaks off, and not without end."""

from __future__ import annotations

import pytest
from ui_modules import Modules

pytestmark = pytest.mark.needs("browser")

TRIED = """
const { insist } = await load("client");
const asked = [];
const found = await insist((again) => {
  asked.push(again);
  return asked.length > given.failures ? Promise.resolve("there") : Promise.reject(new TypeError("broken off"));
}).catch((problem) => problem.message);
return [asked, found];
"""


def test_what_breaks_off_is_asked_for_again_under_another_address(ui: Modules) -> None:
    asked, found = ui.run(TRIED, failures=2)
    assert (asked[0], found) == ("", "there")
    assert len(set(asked)) == 3
    once_more, _ = ui.run(TRIED, failures=1)
    assert not set(once_more[1:]) & set(asked), "a browser may remember each address that failed"


def test_it_is_not_asked_for_without_end(ui: Modules) -> None:
    asked, found = ui.run(TRIED, failures=9)
    assert (len(asked), found) == (3, "broken off")


def test_a_module_is_had_at_the_second_address_though_the_first_one_is_not(ui: Modules) -> None:
    name = ui.run(
        """const { insist } = await load("client");
        const address = (again) => (again ? `/ui/app/words/zh.js${again}` : "/ui/none.js");
        const { default: words } = await insist((again) => import(address(again)));
        return words.Overview;"""
    )
    assert name == "概览"


def test_rules_that_cannot_be_had_leave_nothing_behind(ui: Modules) -> None:
    failed, left = ui.run(
        """const { loadRules } = await load("client");
        const failed = await loadRules(new URL("/ui/none.css", location.href).href).catch((problem) => problem.message);
        return [failed, document.querySelectorAll("link[href*=none]").length];"""
    )
    assert failed.endswith("/ui/none.css cannot be loaded")
    assert left == 0
    assert (
        ui.run(
            """const { loadRules } = await load("client");
        await loadRules(new URL("/ui/app/map/map.css", location.href).href);
        return document.querySelectorAll("link[href$='map.css']").length;"""
        )
        == 1
    )
