"""What other ways cut."""

from __future__ import annotations

import numpy as np
import pytest
from application_graphs import line, random_graph

from ces_core.decomposition import comparison
from ces_core.decomposition.clusters import clusters
from ces_core.decomposition.graph import Limits, division, even_limits


def test_each_rival_is_measured_on_the_same_division() -> None:
    graph = random_graph(14, 2)
    asked = division(graph, even_limits(graph, 3))
    whole, drawn, metis = comparison.rivals(asked, 3, seed=1)
    assert (whole.name, whole.parts, whole.cut) == ("unsplit", 1, 0)
    assert "above its capacity" in whole.above
    assert drawn.cut is not None
    assert drawn.spread > 0
    assert asked.cut(clusters(asked, 3)) < drawn.cut
    assert metis.name == "metis"


def test_without_pymetis_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "find_spec", lambda name: None)
    metis = comparison.rivals(division(line([1.0, 2.0]), Limits()), 2)[2]
    assert (metis.cut, metis.lacks) == (None, "pymetis is not installed")


def test_clusters_are_within_three_hundredths_of_metis() -> None:
    pytest.importorskip("pymetis", reason="an extra of ces-core: METIS to compare with")
    compared = 0
    for seed in range(5):
        graph = random_graph(40, seed, chords=30)
        asked = division(graph, even_limits(graph, 4))
        theirs = comparison.metis(asked, 4)
        if not asked.broken(theirs) and int(theirs.max()) == 3:
            assert 0 < asked.cut(clusters(asked, 4)) <= 1.03 * asked.cut(theirs)
            compared += 1
    assert compared >= 3, "otherwise nothing is shown"


def test_fewer_parts_than_asked_are_no_answer_to_the_same_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "find_spec", lambda name: name)
    monkeypatch.setattr(comparison, "metis", lambda asked, parts, seed: np.array([0, 0, 1, 1]))
    theirs = comparison.rivals(division(line([1.0, 2.0, 3.0]), Limits()), 3)[2]
    assert (theirs.parts, theirs.above) == (2, "2 parts, and 3 were asked for")


def test_a_rival_that_finds_nothing_says_why() -> None:
    asked = division(line([1.0] * 3), Limits(cpu=100))
    drawn = comparison.rivals(asked, 2)[1]
    assert (drawn.cut, drawn.lacks) == (None, "2 parts cannot hold the graph: it takes 4 at least")
