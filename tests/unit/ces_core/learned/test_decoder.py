"""From scores to plans, whoever scores: the rules that policies are compared with need no file."""

from __future__ import annotations

import numpy as np
import pytest
from policy_table import uniform_scores

from ces_core.learned.decoder import Board, Scorer, Stuck, by_cost, fortified, greedy
from ces_core.learned.episode import begin
from ces_core.learned.sampling import best_of
from ces_core.learned.schema import NODE_FEATURES
from ces_core.model.generate import REGIMES, random_instance
from ces_core.model.instance import read_instance
from ces_core.placement.task_order import task_order
from ces_core.placement.view import problem_view
from ces_core.search.solver import SEARCH


def against(nodes: np.ndarray, context: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The worst advice: to the node that costs most."""
    return -by_cost(nodes, context, mask)


@pytest.mark.parametrize("scorer", [uniform_scores, by_cost, against])
def test_bad_advice_still_ends_in_plans_that_fit(scorer: Scorer) -> None:
    found = 0
    for regime in REGIMES:
        for seed in range(15):
            problem = read_instance(random_instance(regime, seed))
            board = greedy(problem_view(problem), scorer)
            if isinstance(board, Stuck):
                continue
            found += 1
            assert board.state.fits[0]
            assert (board.state.free >= 0).all()
            assert (board.state.reserve >= -1e-9).all()
            best = SEARCH.solve(problem).metrics
            assert best is not None
            assert board.state.score[0] < best.composite + 0.01
    assert found >= 40


@pytest.mark.parametrize("scorer", [uniform_scores, by_cost, against])
def test_a_plan_seen_on_the_way_is_taken_only_where_it_is_better(scorer: Scorer) -> None:
    better = 0
    for regime in REGIMES:
        for seed in range(15):
            view = problem_view(read_instance(random_instance(regime, seed)))
            plain, found = greedy(view, scorer), fortified(view, scorer)
            if isinstance(plain, Stuck):
                continue
            assert isinstance(found, Board)
            assert found.state.fits[0]
            assert (found.state.reserve >= -1e-9).all()
            assert found.state.node_of.tolist() == found.episode.placement.tolist()
            assert found.state.score[0] >= plain.state.score[0]
            if found.state.score[0] == plain.state.score[0]:
                assert found.state.node_of.tolist() == plain.state.node_of.tolist()
            better += found.state.score[0] > plain.state.score[0]
            said = found.scores[np.arange(len(found.scores)), found.state.node_of]
            assert np.isfinite(said).all(), "what was said is of this plan, whichever it is"
    if scorer is by_cost:
        assert better <= 3, "the rule goes by that plan already"
    else:
        assert better


def test_nothing_is_said_of_tasks_that_nobody_was_asked_about() -> None:
    view = problem_view(read_instance(random_instance("thesis", 4)))
    board = Board.of(view, task_order(view))
    assert board.odds([0] * len(view.demand)) == [0.0] * len(view.demand)


def test_greedy_takes_the_best_node_at_every_step() -> None:
    seen: list[tuple[int, np.ndarray]] = []

    def recording(nodes: np.ndarray, context: np.ndarray, mask: np.ndarray) -> np.ndarray:
        scores = by_cost(nodes, context, mask)
        seen.append((int(np.argmax(np.where(mask, scores, -np.inf)[0])), mask[0].copy()))
        return scores

    board = greedy(problem_view(read_instance(random_instance("thesis", 4))), recording)
    assert isinstance(board, Board)
    assert len(seen) == len(board.episode.order)
    # Ties may go either way, so what counts is that each chosen node was allowed; without ties it is the best one.
    assert [int(board.episode.placement[t]) for t in board.episode.order] == [node for node, _ in seen]


def test_the_probability_of_a_node_is_what_the_scores_gave_it_among_those_that_were_possible() -> None:
    view = problem_view(read_instance(random_instance("scarce", 5)))
    possible: list[int] = []

    def counting(nodes: np.ndarray, context: np.ndarray, mask: np.ndarray) -> np.ndarray:
        possible.append(int(mask[0].sum()))
        return uniform_scores(nodes, context, mask)

    even = greedy(view, counting)
    assert isinstance(even, Board)
    assert len(possible) == len(even.episode.order), "no dead end, which would make the counts hard to tell apart"
    odds = even.odds(even.state.node_of.tolist())
    np.testing.assert_allclose([odds[task] for task in even.episode.order], [1 / count for count in possible])
    least = [int(np.argmin(row)) for row in even.scores]
    barred = [p for p, row in zip(even.odds(least), even.scores, strict=True) if np.isneginf(row).any()]
    assert barred
    assert not any(barred)


def test_drawn_plans_have_the_probabilities_of_the_scores_whatever_the_temperature() -> None:
    view = problem_view(read_instance(random_instance("tight", 3)))
    chosen = greedy(view, by_cost)
    assert isinstance(chosen, Board)
    cold = best_of(view, by_cost, 1, 1e-9, np.random.default_rng(1))
    assert cold is not None
    assert cold.episode.placement.tolist() == chosen.episode.placement.tolist()
    nodes = chosen.state.node_of.tolist()
    np.testing.assert_allclose(cold.odds(nodes), chosen.odds(nodes))


def test_a_dead_end_is_left_for_a_node_that_leaves_room() -> None:
    """The advice sends the first task to the only node that holds the second."""
    data = {
        "nodes": [{"name": "large", "cpu": 10, "memory": 1}, {"name": "small", "cpu": 7, "memory": 9}],
        "job": {"tasks": [{"name": "heavy", "cpu": 6.9}, {"name": "other", "cpu": 6.8, "memory": 1}]},
    }
    view = problem_view(read_instance(data))

    def to_large(nodes: np.ndarray, context: np.ndarray, mask: np.ndarray) -> np.ndarray:
        share = [name for name, _ in NODE_FEATURES].index("cpu-share")
        return -nodes[:, :, share]

    board = greedy(view, to_large)
    assert isinstance(board, Board)
    assert sorted(board.episode.placement.tolist()) == [0, 1]


def test_a_scorer_is_asked_no_more_than_twice_for_a_task_however_hard_the_job() -> None:
    for seed in (80017, 70004, 70174):  # hard, and two without a place
        view = problem_view(read_instance(random_instance("scarce", seed)))
        asked = []

        def counting(nodes: np.ndarray, context: np.ndarray, mask: np.ndarray) -> np.ndarray:
            asked.append(1)  # noqa: B023 (called before the next turn)
            return by_cost(nodes, context, mask)

        greedy(view, counting)
        assert len(asked) <= 2 * len(view.demand)


@pytest.mark.parametrize("regime", sorted(REGIMES))
def test_places_that_are_found_for_all_tasks_can_be_taken_and_looking_for_them_changes_nothing(regime: str) -> None:
    found = 0
    for seed in range(12):
        view = problem_view(read_instance(random_instance(regime, seed)))
        board = Board.of(view, task_order(view))
        assert begin(board.view, board.state, board.episode)
        places, left_over = (np.zeros(len(view.demand), dtype=np.int64) for _ in range(2))
        before = board.state.free.copy(), board.state.spare.copy()
        if not board.completion(places, left_over):
            assert left_over.any()
            continue
        found += 1
        np.testing.assert_allclose(board.state.free, before[0])
        np.testing.assert_allclose(board.state.spare, before[1])
        assert all(board.place(int(places[t])) for t in board.episode.order)
    assert found >= 8


def test_what_cannot_be_placed_is_said_to_be_stuck() -> None:
    crowded = {
        "nodes": [{"name": "a", "cpu": 10}, {"name": "b", "cpu": 10}],
        "job": {"tasks": [{"name": f"t{i}", "cpu": 6} for i in range(3)]},
    }
    answer = greedy(problem_view(read_instance(crowded)), by_cost)
    assert isinstance(answer, Stuck)
    assert answer.crowded
    narrow = {
        "nodes": [{"name": "a", "cpu": 10}, {"name": "b", "cpu": 10}],
        "links": [{"src": "a", "dst": "b", "bandwidth": 5}, {"src": "b", "dst": "a", "bandwidth": 5}],
        "job": {
            "tasks": [{"name": "x", "cpu": 6}, {"name": "y", "cpu": 6}],
            "flows": [{"src": "x", "dst": "y", "min": 6, "max": 8}],
        },
    }
    answer = greedy(problem_view(read_instance(narrow)), by_cost)
    assert isinstance(answer, Stuck)
    assert not answer.crowded


def test_the_best_of_more_draws_is_no_worse_and_the_same_seed_draws_the_same() -> None:
    gained = 0.0
    for seed in range(10):
        view = problem_view(read_instance(random_instance("tight", seed)))
        few = best_of(view, by_cost, 4, 1.0, np.random.default_rng(1))
        again = best_of(view, by_cost, 4, 1.0, np.random.default_rng(1))
        many = best_of(view, by_cost, 64, 1.0, np.random.default_rng(1))
        assert few is not None
        assert again is not None
        assert many is not None
        assert few.episode.placement.tolist() == again.episode.placement.tolist()
        gained += float(many.state.score[0] - few.state.score[0])
    assert gained > 0


def test_drawing_all_plans_that_there_are_finds_the_best_of_them() -> None:
    """No two draws are alike, so as many draws as there are plans miss none."""
    view = problem_view(read_instance(random_instance("thesis", 2, nodes=4, tasks=4)))
    unlike = [
        best_of(view, scorer, 4**4, 1.0, np.random.default_rng(1)) for scorer in (uniform_scores, by_cost, against)
    ]
    worth = [float(board.state.score[0]) for board in unlike if board is not None]
    assert len(worth) == 3
    np.testing.assert_allclose(worth, worth[0], atol=1e-9)


def test_drawn_nodes_come_as_often_as_their_odds_say() -> None:
    data = {
        "nodes": [{"name": f"n{n}", "cpu": 10, "memory": 10} for n in range(3)],
        "job": {"tasks": [{"name": "only", "cpu": 1, "memory": 1}]},
    }
    view = problem_view(read_instance(data))
    scores = np.log(np.array([[0.6, 0.3, 0.1]], dtype=np.float32))
    rng = np.random.default_rng(0)
    drawn = [best_of(view, lambda *seen: scores, 1, 1.0, rng) for _ in range(2000)]
    counts = np.bincount([int(board.state.node_of[0]) for board in drawn if board is not None], minlength=3)
    np.testing.assert_allclose(counts / 2000, [0.6, 0.3, 0.1], atol=0.04)


def test_where_all_draws_end_without_a_plan_the_task_left_over_goes_first() -> None:
    """The advice sends the first task, the heavier one, to the only node that holds the second."""
    data = {
        "nodes": [{"name": "large", "cpu": 10, "memory": 1}, {"name": "small", "cpu": 7, "memory": 9}],
        "job": {"tasks": [{"name": "heavy", "cpu": 6.9}, {"name": "other", "cpu": 6.8, "memory": 1}]},
    }
    view = problem_view(read_instance(data))
    share = [name for name, _ in NODE_FEATURES].index("cpu-share")
    board = best_of(view, lambda nodes, context, mask: -nodes[:, :, share], 1, 1e-6, np.random.default_rng(0))
    assert board is not None
    assert sorted(board.episode.placement.tolist()) == [0, 1]
