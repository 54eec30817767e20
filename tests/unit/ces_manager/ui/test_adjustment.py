"""What would be changed of a running application, as the dashboard tells it: the numbers of `ces adjust`."""

from __future__ import annotations

from typing import Any

import pytest
from ui_modules import Modules

pytestmark = pytest.mark.needs("browser")
DRAW = """
const { render, h } = await import("/ui/vendor/preact.js");
await (await load("show")).setLanguage(given.language);
const { Proposed } = await load("parts/adjustment");
const place = document.createElement("div");
render(h(Proposed, { proposal: given.proposal }), place);
return place.textContent.replace(/\\s+/g, " ").trim();
"""
CERTIFICATE = {"text": "No adjustment with at most 3 moves gains more than 0.01, the moves paid."}
MOVE = {"task": "detect-0", "src": "gate1", "dst": "rack1", "seconds": 30, "requests": 300}
CHANGE = {"step": "moves", "moves": [MOVE], "objective": 0.9, "cost": 0.008}


LAST_LOOK = """
const { render, h } = await import("/ui/vendor/preact.js");
await (await load("show")).setLanguage(given.language);
const { LastLook } = await load("parts/adjustment");
const place = document.createElement("div");
render(h(LastLook, { look: given.look }), place);
return place.textContent.replace(/\\s+/g, " ").trim();
"""
LOOK_TWICE = """
const { render, h } = await import("/ui/vendor/preact.js");
await (await load("show")).setLanguage("en");
const { session } = await load("client");
const { Adjustment } = await load("parts/adjustment");
const [before, real] = [session.value, window.fetch];
session.value = { token: "t", expires_at: "", identity: { role: "submitter" } };
const answers = [];
window.fetch = (path) => String(path).includes("/adjustment")
  ? new Promise((answer) => answers.push(answer))
  : real(path); // others ask, too: what went before on this page
const place = document.createElement("div");
render(h(Adjustment, { id: "j" }), place);
const button = place.querySelector("button");
const seen = [];
const see = async (asked, busy) => {
  const there = () => answers.length === asked && button.disabled === busy;
  while (!there()) await new Promise((done) => setTimeout(done, 5));
  seen.push(place.textContent.replace(/\\s+/g, " ").trim());
};
const say = (status, body) => answers.at(-1)(new Response(JSON.stringify(body), { status }));
button.click();
await see(1, true);
say(200, given.proposal);
await see(1, false);
button.click();
await see(2, true);
say(409, { title: "Conflict", detail: "it has changed" });
await see(2, false);
[session.value, window.fetch] = [before, real];
return seen;
"""


def drawn(ui: Modules, language: str = "en", **proposal: Any) -> str:
    text: str = ui.run(DRAW, proposal={"broken": [], "certificate": CERTIFICATE} | proposal, language=language)
    return text


def test_a_move_its_gain_its_cost_and_what_is_proven(ui: Modules) -> None:
    text = drawn(ui, objective=0.5, gain=0.392, adjustment=CHANGE)
    assert "It keeps its limits." in text
    assert "detect-0gate1rack130300" in text.replace(" ", ""), "a row: where from and to, seconds, requests"
    assert "Worth it: 1 move; objective 0.9000, of which moves take 0.0080: 0.3920 more than now" in text
    assert CERTIFICATE["text"] in text


def test_what_is_broken_and_what_ends_it(ui: Modules) -> None:
    broken = [{"code": "deadline", "message": "loop: 82 ms of 60 ms"}]
    assert "A limit is broken: loop: 82 ms of 60 ms" in drawn(ui, broken=broken, adjustment=CHANGE).replace(":l", ": l")
    assert "Nothing would change." in drawn(ui, broken=broken)
    rates = drawn(ui, gain=0.1, adjustment=CHANGE | {"moves": [], "step": "rates"})
    assert "other rates and paths, which the service sets by itself where the job says adjust" in rates
    assert "all begin again" in drawn(ui, adjustment=CHANGE, remark="when one ends, all begin again")


def test_when_it_looked_by_itself_why_and_what_came_of_it(ui: Modules) -> None:
    look = {"looked_at": "2020-01-01T00:00:00Z", "why": "link a -> b has changed", "outcome": "w-1 moves from b to c"}
    text = ui.run(LAST_LOOK, look=look, language="en")
    assert text.endswith("ago: link a -> b has changedw-1 moves from b to c"), "on a line of its own"
    assert "requests" not in text
    text = ui.run(LAST_LOOK, look=look | {"left": 9670}, language="en")
    assert text.endswith("9670 requests may fall into further moves this hour")
    assert "自行查看" in ui.run(LAST_LOOK, look=look, language="zh")


def test_while_it_looks_again_and_where_that_fails_no_old_proposal_is_shown(ui: Modules) -> None:
    texts = ui.run(LOOK_TWICE, proposal={"broken": [], "certificate": CERTIFICATE, "adjustment": CHANGE})
    assert ["Loading…" in text for text in texts] == [True, False, True, False]
    assert ["1 move" in text for text in texts] == [False, True, False, False]
    assert "it has changed" in texts[3]


def test_in_chinese(ui: Modules) -> None:
    text = drawn(ui, "zh", objective=0.5, gain=0.392, adjustment=CHANGE)
    assert "值得：1 次迁移" in text
    assert "各项限制均满足。" in text


MOVES = """
const { render, h } = await import("/ui/vendor/preact.js");
const { setLanguage, clock } = await load("show");
await setLanguage(given.language);
const { MoveList } = await load("parts/moves");
clock.value = Date.parse("2030-01-01T00:10:00Z");
const place = document.createElement("div");
render(h(MoveList, { moves: given.moves }), place);
return [...place.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent.trim()));
"""


def test_the_latest_moves_and_whether_they_paid(ui: Modules) -> None:
    move = {"task": "w-1", "source": "a", "destination": "b", "began_at": "2030-01-01T00:00:00Z", "why": "link a -> c"}
    own = move | {"requests": 6, "in_vain": False, "state": "done"}
    moves = [
        own | {"id": "4", "pays_at": "2030-01-01T00:12:00Z"},
        own | {"id": "3", "pays_at": "2030-01-01T00:09:00Z"},
        own | {"id": "2", "pays_at": "2030-01-01T00:09:00Z", "in_vain": True, "state": "kept", "reason": "it failed"},
        move | {"id": "1", "why": None, "in_vain": False, "state": "done"},
    ]
    rows = ui.run(MOVES, moves=moves, language="en")
    assert [row[:3] for row in rows] == [["w-1", "a", "b"]] * 4
    assert [row[5:] for row in rows] == [
        ["6", "pays in 2m00s", "link a -> c"],
        ["6", "has paid", "link a -> c"],
        ["6", "did not pay", "it failed"],
        ["", "", ""],
    ]
    words = [row[6] for row in ui.run(MOVES, moves=moves, language="zh")]
    assert (words[0].endswith("后值得"), words[1:]) == (True, ["已值得", "不值得", ""])
