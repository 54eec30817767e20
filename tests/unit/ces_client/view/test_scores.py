"""How fast nodes are, in words."""

from __future__ import annotations

from datetime import timedelta

from client_views import NOW, node, wide

from ces_client.view.lists import node_detail, node_table
from ces_client.view.scores import category_text, level_text, raw_text
from ces_common.messages.scores import Measured, Measurement, NodeScores
from ces_common.scores import REFERENCE, scores_of


def scores(*times: float, others: float | None = None) -> NodeScores:
    """So many times as fast as the reference core, in each repeat."""
    rates = [each * REFERENCE["integer"] for each in times]
    one = Measurement(kind="integer", threads=2, rates=rates, others=others, source="pow")
    return scores_of(Measured(at=NOW - timedelta(minutes=3), measurements=[one]))


QUIET = scores(2.0, 2.02, 2.0, 2.0, 1.99)


def test_a_node_in_full_shows_every_level_with_its_source() -> None:
    shown = "\n".join(wide(node_detail(node(scores=QUIET), [], NOW)))
    assert "6 of 10, measured 3m00s ago" in shown
    assert "computing 2 (integer)" in shown
    assert "integer, 2 threads: 32 kpowers/s, score 2, spread 1.5 %; pow" in shown
    assert "not measured" in "\n".join(wide(node_detail(node(), [], NOW)))


def test_what_is_noisy_says_so_at_every_level() -> None:
    loud = scores(2.0, 1.0, 2.0, others=0.4)
    assert level_text(loud) == "6 noisy"
    assert category_text(loud.categories[0]) == "computing 2 noisy (integer)"
    assert raw_text(loud.raw[0]).endswith("spread 50.0 %, others used 40% of the CPU noisy; pow")


def test_the_list_has_a_column_of_levels_where_any_node_was_measured() -> None:
    assert "LEVEL" not in wide(node_table([node()], NOW))[0]
    head, fast, unknown = wide(node_table([node(name="fast", scores=QUIET), node(name="unknown")], NOW))[:3]
    assert "LEVEL" in head
    assert (fast.split()[-1], unknown.split()[-1]) == ("6", "\u2013")
