"""What typical tasks are, and how much of a node they cannot use, worked out by hand."""

from __future__ import annotations

import pytest
from gpu_tasks import asked

from ces_core.gpus.fragmentation import fragmented, fragments_of, typical
from ces_core.gpus.model import Fleet, GpuNode, Models

USUAL = typical([asked(4000, 1, 500)] * 3 + [asked(8000, 1, 1000)])


def node(cpu: int, *left: int, model: str = "") -> Fleet:
    fleet = Models().fleet([GpuNode("n", cpu, 1 << 20, len(left), model)])
    fleet.milli[0] = left
    return fleet


def test_the_most_frequent_up_to_a_share_of_all() -> None:
    often, seldom, never = asked(1000, 1, 470), asked(2000, 1, 470), asked(1, 1, 1000)
    usual = typical([often] * 90 + [seldom] * 6 + [never] * 4)
    assert usual.cpu.tolist() == [1000, 2000]
    assert (usual.weight.tolist(), usual.total) == ([90, 6], 96)


def test_of_equally_frequent_ones_the_larger_is_typical_and_memory_tells_nothing_apart() -> None:
    kinds = [asked(1000, memory=1), asked(1000, memory=2), asked(3000), asked(3000), asked(2000), asked(2000)]
    assert typical(kinds, share=0.6).cpu.tolist() == [3000, 2000]


def test_no_tasks_are_no_typical_ones() -> None:
    with pytest.raises(ValueError, match="no tasks"):
        typical([])


@pytest.mark.parametrize(
    ("cpu", "left", "useless"),
    [
        (8000, (1000, 400), 3 * 400 + 400),  # both kinds use the whole card
        (6000, (1000, 400), 3 * 400 + 1400),  # not enough CPU for a whole card's task
        (8000, (900, 500), 0 + 1400),  # no card for it
        (3999, (1000, 1000), 4 * 2000),  # not enough CPU for anybody
        (8000, (0, 0), 0),
        (8000, (1000, 1000), 0),
    ],
)
def test_what_a_typical_task_cannot_use(cpu: int, left: tuple[int, ...], useless: int) -> None:
    assert fragments_of(node(cpu, *left), 0, USUAL) == useless
    assert fragmented(node(cpu, *left), USUAL) == useless / 4


def test_tasks_without_gpu_use_none_and_some_need_another_model_or_more_cards() -> None:
    assert fragments_of(node(9000, 1000), 0, typical([asked(1, 0, 0)])) == 1000
    assert fragments_of(node(9000, 1000, 300), 0, typical([asked(1, 2, 1000)])) == 1300
    models = Models()
    fleet = models.fleet([GpuNode("n", 1, 1, 1, "T4"), GpuNode("m", 1, 1, 1, "P100")])
    usual = typical([asked(1, 1, 1000, models.bits({"T4", "G2"}))])
    assert [fragments_of(fleet, i, usual) for i in range(2)] == [0, 1000]
