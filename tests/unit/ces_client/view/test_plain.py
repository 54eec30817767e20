"""Text from elsewhere: nothing of it steers the terminal that shows it."""

from __future__ import annotations

import json
import re

import pytest
from client_views import lines
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from ces_client.view.plain import plain, plain_json, plain_text
from ces_client.view.tables import plain_table

STEERING = [*range(0x00, 0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F]
STEERING += [*range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xD800, 0xDFFF]


@pytest.mark.parametrize("code", STEERING)
def test_what_steers_a_terminal_becomes_visible(code):
    shown = plain(f"a{chr(code)}b")
    assert re.fullmatch(r"a\\(x[0-9a-f]{2}|u[0-9a-f]{4})b", shown)
    assert int(shown[3:-1], 16) == code


def test_everything_else_stays_as_it_is():
    assert plain("a\tb\nc → é 漢 \\x1b") == "a\tb\nc → é 漢 \\x1b"


@given(st.text())
def test_json_says_the_same_without_what_steers(text):
    shown = plain_json(json.dumps({"a": text}, ensure_ascii=False))
    assert json.loads(shown) == {"a": text}
    assert plain(shown) == shown


def test_styles_stay_with_their_words():
    text = Text.assemble(("good", "green"), " \x1b]0;title\x07", ("bad\u202e", "red"), "end")
    shown = plain_text(text)
    assert shown.plain == "good \\x1b]0;titlebad\\u202eend"  # rich itself drops the bell
    styles = {shown.plain[span.start : span.end]: str(span.style) for span in shown.spans}
    assert styles["good"] == "green"
    assert "".join(word for word, style in styles.items() if style == "red") == "bad\\u202e"


def test_a_table_makes_room_for_what_becomes_visible():
    table = plain_table("A", "B")
    table.add_row("\x1b[2J\x1b[1;1H\x9b\x07", "b")
    assert lines(table, 60)[1].split() == ["\\x1b[2J\\x1b[1;1H\\x9b\\x07", "b"]
