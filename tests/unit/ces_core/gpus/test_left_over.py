"""What steps of a job make of what is left over of cards, by hand and against the measure itself."""

from __future__ import annotations

import numpy as np
from gpu_tasks import asked, gpu_nodes
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.gpus.fragmentation import fragments_of, typical
from ces_core.gpus.left_over import left_over
from ces_core.gpus.model import CARD, Fleet, GpuNode, Models
from ces_core.gpus.scores import Policy, share_of

WHOLE = typical([asked()])
HALF = asked(milli=500)


def fleet(*left: tuple[int, ...]) -> Fleet:
    found = Models().fleet([GpuNode(f"n{i}", 8000, 1, len(each)) for i, each in enumerate(left)])
    for i, each in enumerate(left):
        found.milli[i, : len(each)] = each
    return found


def test_a_share_on_an_idle_card_takes_it_from_whoever_needs_it_whole() -> None:
    """Half a card that nobody can use more, where the other node has half a card less that nobody could."""
    change = left_over(fleet((1000,), (500,)), WHOLE, HALF, 1)
    assert change.tolist() == [[0.0, -1.0], [0.0, 0.0]]


def test_the_second_half_of_a_card_is_for_nothing() -> None:
    change = left_over(fleet((1000, 1000)), WHOLE, HALF, 4)
    assert change[0].tolist() == [0.0, -1.0, -1.0, -2.0, -2.0]


def test_beyond_what_fits_nothing_changes_and_full_nodes_are_none_to_go_by() -> None:
    change = left_over(fleet((500,), (400,)), WHOLE, HALF, 3)
    assert change.tolist() == [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    assert left_over(fleet((400,)), WHOLE, HALF, 2).tolist() == [[0.0, 0.0, 0.0]]


def test_cpu_that_is_missing_makes_cards_useless() -> None:
    some = fleet((1000, 1000), (1000, 1000))
    some.cpu[0] = 1000
    usual = typical([asked(cpu=1000)])
    assert left_over(some, usual, asked(cpu=500, milli=500), 1)[:, 1].tolist() == [-1.0, 0.0]


@settings(max_examples=60, deadline=None)
@given(nodes=gpu_nodes(), data=st.data())
def test_it_is_the_measure_before_and_after(nodes: list[GpuNode], data: st.DataObject) -> None:
    """And the fleet is left as it was."""
    models = Models()
    free = models.fleet(nodes)
    for i, each in enumerate(nodes):
        for card in range(each.cards):
            free.milli[i, card] = data.draw(st.sampled_from([0, 250, 500, 1000]))
    before = [array.copy() for array in free]
    usual = typical([asked(4000, 1, 500), asked(1000, 2), asked(0, 1, 250, models.bit("T4"))])
    share, memory = data.draw(st.sampled_from([250, 500, 1000])), data.draw(st.sampled_from([0, 4000]))
    step = asked(1000, 1, share, card_memory=memory)
    change = left_over(free, usual, step, 3)
    assert all(np.array_equal(one, other) for one, other in zip(free, before, strict=True))
    assert (np.diff(change, axis=1) <= 1e-9).all()
    steps = {}
    for node in range(len(nodes)):
        lost = fragments_of(free, node, usual)
        for number in range(1, 4):
            card = share_of(Policy.BEST_FIT, free, usual, step, node)
            if card < 0:
                break
            free.place(node, (card,), step)
            after = fragments_of(free, node, usual)
            steps[node, number] = (lost - after) / (CARD * usual.total)
            lost = after
    best = max(steps.values(), default=0.0)
    for (node, number), gained in steps.items():
        assert np.isclose(change[node, number] - change[node, number - 1], gained - best)
