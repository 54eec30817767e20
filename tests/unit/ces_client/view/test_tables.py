"""Tables and lists of facts on narrow terminals."""

from __future__ import annotations

from client_views import lines
from hypothesis import given
from hypothesis import strategies as st

from ces_client.view.tables import fact_list, plain_table

WORDS = st.text("abc[]", min_size=1, max_size=30)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=3), st.integers(20, 120))
def test_cells_are_shown_whole_or_their_column_is_left_out(rows, width):
    table = plain_table("A", "B", "C", "D", wrapped=("C",), optional=("B",))
    for a, b, c in rows:
        table.add_row(a, b, c, a)
    head, *shown = lines(table, width)
    for (a, b, c), line in zip(rows, shown, strict=True):
        assert line.split() == ([a, b, c, a] if "B" in head else [a, c, a])
    if "B" in head:
        assert max(map(len, [head, *shown])) <= width


def test_text_is_wrapped_at_words_only():
    table = plain_table("NAME", "WHY")
    table.add_row("n1", "a sentence that is much too long for the terminal that it is shown on")
    shown = lines(table, 30)
    assert len(shown) > 3
    assert max(map(len, shown)) <= 30
    assert " ".join(" ".join(line.split()) for line in shown[1:]).startswith("n1 a sentence that is")


def test_facts_are_whole_lines():
    command = "python -m train " + "--flag " * 30
    screen = lines(fact_list([("a", "1"), ("command", command.strip())]), 400)
    assert screen == ["a        1", f"command  {command.strip()}"]
